package search

// RefineOptions configure [NewRefine].
type RefineOptions struct {
	Points int
}

func NewRefine(space Space, opt RefineOptions, seed uint64) Strategy {
	return NewEvolve(space, EvolveOptions{Points: opt.Points}, seed)
}
