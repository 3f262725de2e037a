package problem

// Nearest returns the known word that a misspelt one most likely means, or "" when none is close. Of equally
// close words the first wins.
func Nearest(word string, known []string) string {
	best, fewest := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := editDistance(word, k); d < fewest {
			best, fewest = k, d
		}
	}
	return best
}

// editDistance counts the bytes to insert, delete, replace or swap with their neighbour to turn a into b.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			replace := last[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
