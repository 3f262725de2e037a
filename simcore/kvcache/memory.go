package kvcache

import "sync"

// memory is where a cache keeps the state of its blocks, in pages of neighbouring ids.
type memory[P any] struct {
	directory []int32 // page number + 1 by id >> pageBits; 0 where there is none
	pages     []P
}

// pool keeps the memory of caches that are not needed any more, for others: a sweep has thousands of runs, one like the other, and
// memory that was just used is still in the processor's cache. What is in it refers to nothing, and its directory is empty.
type pool[P any] struct{ spare sync.Pool }

var (
	cacheMemory pool[page]
	radixMemory pool[radixPage]
)

// take returns memory, empty when there is none.
func (p *pool[P]) take() memory[P] {
	if m, ok := p.spare.Get().(*memory[P]); ok {
		return *m
	}
	return memory[P]{}
}

// give leaves memory to whoever takes some next.
func (p *pool[P]) give(m memory[P]) { p.spare.Put(&m) }
