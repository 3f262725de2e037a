package search

import "flag"

// seeds is how often each search is repeated with another seed.
var seeds = flag.Int("seeds", 1, "seeds with which searches of recorded tables are repeated")
