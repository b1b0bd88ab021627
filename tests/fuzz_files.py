"""Forged files: their checksums are right, so that what is wrong with them reaches the code that reads them.

``python tests/fuzz_files.py --seconds 60`` loads files with random changes in another process, and prints every file
that leads to anything but the object, an InvalidModelError or an OSError, or to more than 2 s or 500 MB. Such files are
kept in a directory that it names.
"""

import argparse
import contextlib
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import safetensors.numpy
from sklearn.exceptions import ConvergenceWarning
from tallies import add_tally

from quickmeans import InvalidModelError, QKMeans, QKNeighbors, QKNystroem, load
from quickmeans.files import container

SECONDS, MEGABYTES = 2.0, 500.0
CLOCKS = (time.perf_counter, time.process_time)  # the lower one counts: other programs may be running
FIT = {"n_clusters": 6, "max_iter": 4, "random_state": 0, "tol": 0}
NUMBERS = [0, 1, -1, 2, 63, 64, 65, 255, 2**31, 2**40, 2**63, 2**64 - 1, -(2**63), 10**15, 10**400]
VALUES = [
    *NUMBERS,
    None,
    True,
    0.5,
    -0.5,
    1.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "auto",
    "float32",
    "x",
    [],
    [1],
    {},
]
DTYPES = ["uint8", "uint16", "uint32", "uint64", "int8", "int64", "float16", "float32", "float64", "bool", "complex64"]


def rows(n=300, D=12):
    rng = np.random.default_rng(1)
    centers = 3 * rng.standard_normal((8, D))
    return (centers[rng.integers(8, size=n)] + rng.standard_normal((n, D)) + 2).astype(np.float32)


X = rows()


def samples(folder):
    """Directories with a valid file "f" of every kind, and lists beside it if it is an index."""
    folder.mkdir(parents=True, exist_ok=True)
    makers = {
        "dense": lambda path: QKMeans(3, random_state=0).fit(X).save(path, labels=True),
        "screened": lambda path: QKMeans(6, compression=2, random_state=0).fit(X).save(path),
        "product": lambda path: QKMeans(6, compression=3, shortlist=0, random_state=0).fit(X).save(path),
        "nystroem": lambda path: QKNystroem(n_components=5, random_state=0).fit(X).save(path),
        "hadamard": lambda path: QKNystroem("poly", landmarks="hadamard", n_components=5).fit(X).save(path),
        "flat": lambda path: index("flat").save(path),
        "sq8": lambda path: index("sq8", 1000 + np.arange(len(X))).save(path),
        "pq": lambda path: index("pq4x4", [f"row {i}" for i in range(len(X))]).save(path),
        "checkpoint": lambda path: QKMeans(**FIT, checkpoint=path).fit(X),
        "checkpoint, product": lambda path: QKMeans(**FIT, shortlist=0, compression=3, checkpoint=path).fit(X),
        "checkpoint, batches": lambda path: QKMeans(**FIT, batch_size=50, checkpoint=path).fit(X),
    }
    for kind, make in makers.items():
        (folder / kind).mkdir()
        make(folder / kind / "f")
    return [folder / kind for kind in makers]


def index(payload, ids=None):
    fitted = QKNeighbors(n_lists=6, nprobe=2, payload=payload, random_state=0).fit(X, ids=ids)
    fitted.remove([3, 4] if ids is None else ids[3:5])
    return fitted


# ---- reading ------------------------------------------------------------------------------------------------------


def read(folder):
    """What is in the file in a directory; for a checkpoint, the model that follows from it."""
    options = {"checkpoint, product": {"shortlist": 0, "compression": 3}, "checkpoint, batches": {"batch_size": 50}}
    if not folder.name.startswith("checkpoint"):
        return load(folder / "f")
    return QKMeans(**FIT, **options.get(folder.name, {}), checkpoint=folder / "f").fit(X)


def use(model):
    """Compute with a model; its numbers may be too large for that."""
    D = model.n_features_in_
    with contextlib.suppress(ValueError), np.errstate(all="ignore"):
        if isinstance(model, QKMeans):
            labels = model.predict(np.resize(X, (1, D)))
            assert labels.min() >= 0
            assert labels.max() < len(model.cluster_centers_)
        elif isinstance(model, QKNystroem):
            model.transform(np.resize(X, (1, D)))
        else:
            model.kneighbors(np.resize(X, (1, D)), min(3, model.n_samples_fit_))


def serve():
    """Answer every directory on the input with a line: what came of it, seconds and megabytes."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ConvergenceWarning)
    for line in sys.stdin:
        model, outcome = None, "loaded"
        before, starts = _memory(), [clock() for clock in CLOCKS]
        try:
            model = read(Path(line[:-1]))
        except (InvalidModelError, OSError) as error:
            outcome = f"{type(error).__name__}: {error}"
        except BaseException as error:
            outcome = f"FAILED {type(error).__name__}: {error}"
        seconds = min(clock() - start for clock, start in zip(CLOCKS, starts, strict=True))
        megabytes = max(0.0, _memory(peak=True) - before)
        try:
            if model is not None:
                use(model)
        except BaseException as error:
            outcome = f"FAILED {type(error).__name__} in use: {error}"
        print(json.dumps([outcome[:300], seconds, megabytes]), flush=True)


def _memory(peak=False):
    """Megabytes of this process: now, or at most since the last call."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    if not peak:
        Path("/proc/self/clear_refs").write_text("5")
    return int(status["VmHWM" if peak else "VmRSS"].split()[0]) / 1000


class Reader:
    """Another process that reads files, and is started again if it dies."""

    def __init__(self):
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.communicate()

    def read(self, folder):
        """What came of the file in a directory: a word, seconds and megabytes."""
        if self.process is None:
            command = [sys.executable, __file__, "--serve"]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(f"{folder}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()
        code, self.process = self.process.returncode, None
        return f"FAILED: the process ended with {code}", 0.0, 0.0


def is_bad(outcome, seconds, megabytes):
    return outcome.startswith("FAILED") or seconds > SECONDS or megabytes > MEGABYTES


# ---- changing -----------------------------------------------------------------------------------------------------


def mutate(rng, source, target):
    """Write the files of one directory with some changes to another one; says which."""
    target.mkdir(parents=True, exist_ok=True)
    for old in target.iterdir():
        old.unlink()
    state = container.read(source / "f")
    lists = {path.name: path.read_bytes() for path in source.iterdir() if path.suffix == ".lists"}
    changes = [_change(rng, state, lists) for _ in range(int(rng.integers(1, 3)))]
    for name, data in lists.items():
        (target / name).write_bytes(data)
        state.facts["lists_sha256"] = hashlib.sha256(data).hexdigest()
    (target / "f").write_bytes(written(state))
    return "; ".join(changes)


def _change(rng, state, lists):
    kinds = [_change_fact, _change_tensor, _change_bytes]
    if lists:
        kinds += [_change_lists, _change_lists, _change_quantizer]
    return kinds[rng.integers(len(kinds))](rng, state, lists)


def _change_fact(rng, state, lists):
    keep = {"data", "parameters"} if state.kind == "Checkpoint" else set()
    facts, names = state.facts, sorted(state.facts.keys() - keep)
    name = names[rng.integers(len(names))]
    if name == "parameters" and isinstance(facts[name], dict) and rng.random() < 0.8:
        facts = facts[name] = dict(facts[name])
        name = [*facts, "other"][rng.integers(len(facts) + 1)]
    if rng.random() < 0.1:
        facts.pop(name, None)
        return f"without {name}"
    old = facts.get(name)
    near = [old + 1, old - 1, -old, old * 2] if type(old) in (int, float) else []
    facts[name] = [*VALUES, *near][rng.integers(len(VALUES) + len(near))]
    return f"{name} = {str(facts[name])[:30]}"


def _change_tensor(rng, state, lists):
    names = sorted(state.tensors)
    if not names:
        return "nothing"
    name = names[rng.integers(len(names))]
    old = state.tensors[name]
    action = int(rng.integers(7))
    with np.errstate(all="ignore"):
        if action == 0:
            del state.tensors[name]
        elif action == 1:
            state.tensors[name] = old.astype(DTYPES[rng.integers(len(DTYPES) - 1)])
        elif action == 2:
            state.tensors[name] = np.resize(old, rng.integers(0, 9, size=int(rng.integers(0, 4))))
        elif action == 3:
            state.tensors[name] = old[: int(rng.integers(len(old) + 1))] if old.ndim else old
        elif action == 4:
            state.tensors[name] = np.concatenate([old, old]) if old.ndim else old
        elif action == 5:
            state.tensors[name] = state.tensors[names[rng.integers(len(names))]]
        else:
            state.tensors[f"{name}{rng.integers(3)}"] = old
    return f"{name}: change {action}"


def _change_bytes(rng, state, lists):
    names = [name for name in sorted(state.tensors) if state.tensors[name].size]
    if not names:
        return "nothing"
    name = names[rng.integers(len(names))]
    old = state.tensors[name]
    data = _flipped(rng, old.tobytes())
    state.tensors[name] = np.frombuffer(data, old.dtype).reshape(old.shape)
    return f"{name}: bits"


def _change_lists(rng, state, lists):
    name = next(iter(lists))
    data = lists[name]
    action = int(rng.integers(5))
    if action == 0:
        lists[name] = data[: int(rng.integers(len(data)))]
    elif action == 1:
        lists[name] = data + rng.bytes(int(rng.integers(1, 20)))
    elif action == 2:
        lists[name] = _flipped(rng, data)
    else:  # most numbers that lead to others are at the beginning
        i = int(rng.integers(min(len(data), 1200)))
        number = [*NUMBERS[:-3], len(data)][rng.integers(len(NUMBERS) - 2)]
        lists[name] = data[:i] + (number % 2**64).to_bytes(8, "little") + data[i + 8 :]
    return f"lists: change {action}"


def _change_quantizer(rng, state, lists):
    if "quantizer" not in state.tensors:
        return "nothing"
    try:
        inner = container.decode(state.tensors["quantizer"].tobytes())
    except InvalidModelError:
        return "nothing"
    change = [_change_fact, _change_tensor, _change_bytes][rng.integers(3)](rng, inner, {})
    state.tensors["quantizer"] = np.frombuffer(written(inner), np.uint8)
    return f"quantizer: {change}"


def _flipped(rng, data):
    changed = bytearray(data)
    for i in rng.integers(len(data), size=int(rng.integers(1, 4))):
        changed[i] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def written(state):
    """The bytes of a file, whatever its facts: also those that no writer would write."""
    facts = {"class": state.kind, "format_version": container.FORMAT_VERSION} | state.facts | {"sha256": "0" * 64}
    text = json.dumps(facts, separators=(",", ":"))
    data = safetensors.numpy.save(
        {name: np.ascontiguousarray(T) for name, T in state.tensors.items()}, {"quickmeans": text}
    )
    return container.signed(data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--tally", type=Path, help="a JSON file in which the counts of several runs are added up")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    folder, begin, bad = Path(tempfile.mkdtemp(prefix="fuzz-files-")), time.monotonic(), 0
    rng, end, counts, worst = np.random.default_rng(options.seed), time.monotonic() + options.seconds, {}, [0.0, 0.0]
    kinds = samples(folder / "samples")
    with Reader() as reader:
        for n in range(10**9):
            if time.monotonic() > end:
                break
            source = kinds[rng.integers(len(kinds))]
            target = folder / "now" / source.name
            change = mutate(rng, source, target)
            outcome, seconds, megabytes = reader.read(target)
            counts[outcome.split(":")[0]] = counts.get(outcome.split(":")[0], 0) + 1
            worst = [max(worst[0], seconds), max(worst[1], megabytes)]
            if is_bad(outcome, seconds, megabytes):
                bad += 1
                kept = folder / f"bad-{n}" / source.name
                kept.parent.mkdir()
                target.rename(kept)
                print(f"{kept}: {change}: {outcome}, {seconds:.1f} s, {megabytes:.0f} MB", flush=True)
    print(f"seed {options.seed}: {counts}; at most {worst[0]:.2f} s and {worst[1]:.0f} MB; files in {folder}")
    if options.tally:
        most = dict(zip(("seconds", "megabytes"), worst, strict=True))
        add_tally(options.tally, time.monotonic() - begin, {"files": sum(counts.values()), "bad": bad} | counts, most)


if __name__ == "__main__":
    main()
