def _tg_make_heapq(sorted=sorted, len=len, iter=iter, range=range):
    # The steps are those of CPython, because a script can see the order of a heap.
    def rise(heap, start, at):
        item = heap[at]
        while at > start:
            parent = (at - 1) // 2
            if not item < heap[parent]:
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = item

    def sink(heap, at):
        start = at
        item = heap[at]
        child = 2 * at + 1
        while child < len(heap):
            if child + 1 < len(heap) and not heap[child] < heap[child + 1]:
                child += 1
            heap[at] = heap[child]
            at = child
            child = 2 * at + 1
        heap[at] = item
        rise(heap, start, at)

    def heappush(heap, item):
        heap.append(item)
        rise(heap, 0, len(heap) - 1)

    def heappop(heap):
        if not heap:
            raise IndexError("index out of range")
        last = heap.pop()
        return heapreplace(heap, last) if heap else last

    def heapify(heap):
        for at in range(len(heap) // 2 - 1, -1, -1):
            sink(heap, at)

    def heappushpop(heap, item):
        return heapreplace(heap, item) if heap and heap[0] < item else item

    def heapreplace(heap, item):
        if not heap:
            raise IndexError("index out of range")
        top = heap[0]
        heap[0] = item
        sink(heap, 0)
        return top

    def nlargest(n, values, key=None):
        return sorted(values, key=key, reverse=True)[:n] if key is not None else sorted(values, reverse=True)[:n]

    def nsmallest(n, values, key=None):
        return sorted(values, key=key)[:n] if key is not None else sorted(values)[:n]

    def merge(*collections, key=None, reverse=False):
        values = [value for collection in collections for value in collection]
        return iter(sorted(values, key=key, reverse=reverse) if key is not None else sorted(values, reverse=reverse))

    return _tg_module("heapq", {"heappush": heappush, "heappop": heappop, "heapify": heapify, "heappushpop": heappushpop, "heapreplace": heapreplace, "nlargest": nlargest, "nsmallest": nsmallest, "merge": merge})


_tg_heapq = _tg_make_heapq()
