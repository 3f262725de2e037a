package problem

import (
	"cmp"
	"slices"
)

// Nearest returns the known word that a misspelled one most likely means, or "" when none is close. Of equally
// close words the first wins.
func Nearest(word string, known []string) string {
	allowed := max(2, len(word)/3)
	if len(word) <= 3 {
		allowed = 1
	}
	best, bestDistance := "", allowed+1
	for _, k := range known {
		if d := editDistance(word, k, bestDistance); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// Closest returns the n known words that are nearest to a word, the nearest first; equally close ones keep their order.
func Closest(word string, known []string, n int) []string {
	distance := make(map[string]int, len(known))
	for _, k := range known {
		distance[k] = editDistance(word, k, len(word)+len(k)+1)
	}
	out := slices.Clone(known)
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(distance[a], distance[b]) })
	return out[:min(n, len(out))]
}

// editDistance counts the insertions, deletions, substitutions and swaps of neighbours that turn a into b. It
// returns limit as soon as the distance cannot be below it.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit)
}
