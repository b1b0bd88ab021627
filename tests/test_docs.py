"""Links between pages lead somewhere, and the docstrings of what is public name all parameters and attributes."""

import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import quickmeans
from quickmeans.transform import projections

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def anchors(page):
    """What headings are called in links."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {link}"


def test_no_page_has_the_name_of_one_that_sphinx_makes():
    assert not {"search", "genindex", "py-modindex"} & {page.stem for page in PAGES}


def public():
    """Everything that the reference lists."""
    text = (ROOT / "docs" / "reference.md").read_text("utf-8")
    for name in re.findall(r"^   (\w[\w.]*)$", text, re.M):
        module, _, attribute = f"quickmeans.{name}".rpartition(".")
        yield pytest.param(getattr(importlib.import_module(module), attribute), id=name)


def section(docstring, title):
    """The names that a section of a numpydoc docstring describes."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", inspect.cleandoc(docstring), re.M | re.S)
    lines = found[1].splitlines() if found else []
    heads = [line.partition(" :")[0] for line in lines if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


@pytest.mark.parametrize("thing", list(public()))
def test_every_parameter_is_described(thing):
    assert thing.__doc__, "there must be a docstring"
    if inspect.isclass(thing) and (thing.__module__ == projections.__name__ or inspect.isabstract(thing)):
        return  # sets of matrices say in one line what they are; nobody makes an abstract class
    if thing is quickmeans.transform.Factorization or (inspect.isclass(thing) and issubclass(thing, Exception)):
        return  # made by solvers, not by users
    names = set(inspect.signature(thing).parameters) - {"self"}
    described = section(thing.__doc__, "Parameters")
    assert described == names


@pytest.mark.parametrize("name", ["QKMeans", "QKNeighbors", "QKNeighborsTransformer", "QKNystroem"])
def test_every_method_names_its_parameters(name):
    for method, function in inspect.getmembers(getattr(quickmeans, name), inspect.isfunction):
        if method.startswith("_") or not function.__module__.startswith("quickmeans"):
            continue
        for parameter in set(inspect.signature(function).parameters) - {"self", "X"}:
            assert re.search(rf"\b{parameter}\b", function.__doc__ or ""), f"{name}.{method} does not name {parameter}"


def test_every_fitted_attribute_is_described():
    X = np.random.default_rng(0).standard_normal((200, 6))
    for Estimator in (quickmeans.QKMeans, quickmeans.QKNeighbors, quickmeans.QKNystroem):
        model = Estimator(random_state=0).fit(X)
        fitted = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
        described = section(Estimator.__doc__, "Attributes")
        assert fitted <= described, f"{Estimator.__name__} does not describe {fitted - described}"


def test_the_reference_lists_what_is_public():
    listed = {parameter.id.rpartition(".")[2] for parameter in public()}
    for module in ("quickmeans", "quickmeans.transform", "quickmeans.data", "quickmeans.testing"):
        names = set(importlib.import_module(module).__all__) - {"__version__"}
        assert names <= listed, f"docs/reference.md must list {names - listed} of {module}"
