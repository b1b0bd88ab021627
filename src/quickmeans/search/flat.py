"""Lists of plain rows in faiss's memory, as the native search reads them."""

import numpy as np

from quickmeans import kernels
from quickmeans.search.lists import Lists, faiss_library, list_sizes
from quickmeans.threads import resolve_threads

_LEAST_CODED = 64  # columns: a line of the cache holds the code of a row


class FlatRows:
    """The addresses of the rows and ids of all lists; faiss moves them when it adds rows.

    Attributes
    ----------
    native : kernels.RowLists
    """

    def __init__(self, lists: Lists) -> None:
        self.lists = lists  # kept alive
        similarity = lists.metric_type == faiss_library().METRIC_INNER_PRODUCT
        with_codes = lists.d >= _LEAST_CODED
        self.native = kernels.RowLists(lists.nlist, lists.d, similarity=similarity, with_codes=with_codes)
        self._sizes = np.zeros(lists.nlist, np.int64)
        self.refresh()

    def refresh(self) -> None:
        """Look up the lists whose sizes have changed: every change of a list adds rows or removes some."""
        sizes, stored = list_sizes(self.lists), self.lists.invlists
        changed = np.flatnonzero(sizes != self._sizes)
        filled = changed[sizes[changed] > 0]
        rows, ids = np.zeros((2, len(sizes)), np.int64)
        rows[filled] = [int(stored.get_codes(label)) for label in filled.tolist()]
        ids[filled] = [int(stored.get_ids(label)) for label in filled.tolist()]
        try:
            self.native.set(changed, rows[changed], ids[changed], sizes[changed], resolve_threads(None))
        finally:  # Ctrl-C leaves lists without codes
            self._sizes = sizes
