package workload

// disjointSets are sets of the numbers from 0 on, without a common member. Each is named by its least member.
type disjointSets []int32

// newDisjointSets puts each of n numbers into a set of its own.
func newDisjointSets(n int) disjointSets {
	s := make(disjointSets, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

// of is the least member of the set that a number is in.
func (s disjointSets) of(i int32) int32 {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}

// join makes one set of those that two numbers are in.
func (s disjointSets) join(a, b int32) {
	a, b = s.of(a), s.of(b)
	s[max(a, b)] = min(a, b)
}
