def _tg_make_heapq(sorted=sorted, len=len, iter=iter, list=list):
    def down(heap, index):
        while True:
            child = 2 * index + 1
            if child >= len(heap):
                return
            if child + 1 < len(heap) and heap[child + 1] < heap[child]:
                child += 1
            if not heap[child] < heap[index]:
                return
            kept = heap[index]
            heap[index] = heap[child]
            heap[child] = kept
            index = child

    def heappush(heap, item):
        heap.append(item)
        index = len(heap) - 1
        while index > 0 and heap[index] < heap[(index - 1) // 2]:
            parent = (index - 1) // 2
            kept = heap[index]
            heap[index] = heap[parent]
            heap[parent] = kept
            index = parent

    def heappop(heap):
        if not heap:
            raise IndexError("index out of range")
        top = heap[0]
        last = heap.pop()
        if heap:
            heap[0] = last
            down(heap, 0)
        return top

    def heapify(heap):
        heap.sort()

    def heappushpop(heap, item):
        heappush(heap, item)
        return heappop(heap)

    def heapreplace(heap, item):
        top = heappop(heap)
        heappush(heap, item)
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
