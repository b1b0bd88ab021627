"""The site: `make docs`."""

from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

import quickmeans

project = "quickmeans"
author = "the quickmeans developers"
project_copyright = author
release = version = quickmeans.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "myst_parser", "numpydoc"]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "code"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["quickmeans.css"]
html_title = "quickmeans"
html_sidebars = {name: [] for name in ("index", "getting-started", "examples")}  # pages without pages below them
html_show_sourcelink = False
html_theme_options = {
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "header_links_before_dropdown": 5,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}


def inline_math(writer: Any, node: Any) -> None:
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise SkipNode


def block_math(writer: Any, node: Any) -> None:
    writer.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def setup(app: Any) -> None:
    """Formulas as MathML: browsers need no script and no network for them."""
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
