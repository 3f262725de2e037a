package kvcache

// Index says which blocks each of several workers holds, as a router sees them. The blocks that a worker holds of any
// prompt are a prefix of it, as in a [Cache].
type Index struct {
	workers int
}

// NewIndex returns an empty index for sequence ids below ids.
func NewIndex(workers int, ids uint32) *Index { return &Index{workers: workers} }
