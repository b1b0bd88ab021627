"""The table of the clusters: number, size, spread, examples."""

from collections.abc import Mapping

from quickmeans.cluster import QKMeans
from quickmeans.report.examples import Examples
from quickmeans.report.survey import Survey
from quickmeans.report.svg import number

MOST_CLUSTERS = 60


def cluster_table(model: QKMeans, survey: Survey, examples: Examples) -> tuple[str, str]:
    """Return the table of the largest clusters, and a caption."""
    K, n_rows = len(model.cluster_centers_), survey.n_rows or 0
    assert survey.sizes is not None
    shown, spread = survey.largest(K, MOST_CLUSTERS), survey.spread
    lines = []
    for k in shown.tolist():
        size = int(survey.sizes[k])
        cells = [f"<th scope=row>{k}</th>", f"<td>{size:,}</td>", f"<td>{100 * size / max(n_rows, 1):.3g} %</td>"]
        if spread is not None and survey.examples is not None:
            near = [row for row in survey.examples[k].tolist() if row >= 0]
            cells += [f"<td>{number(spread[k])}</td>", f"<td><ul>{examples.html(near)}</ul></td>"]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    heads = ["cluster", "rows", "share", *(["spread", "nearest rows"] if spread is not None else [])]
    head = "".join(f"<th scope=col>{name}</th>" for name in heads)
    table = (
        f'<div class="scroll" tabindex="0"><table class="clusters"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )
    which = survey.which(len(shown), K).capitalize()
    meaning = (
        " Spread: the root of the mean squared distance of the rows from their centroid. The rows shown are those "
        "nearest to it."
    )
    return table, f"{which} clusters, the largest first.{meaning if spread is not None else ''}"


def cluster_names(survey: Survey, examples: Examples) -> Mapping[int, str]:
    """Return the text of the nearest row of every cluster, by number, as far as there are texts."""
    if survey.examples is None:
        return {}
    found = ((k, examples.name(row)) for k, row in enumerate(survey.examples[:, 0].tolist()) if row >= 0)
    return {k: name for k, name in found if name is not None}
