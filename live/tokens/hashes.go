package tokens

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// Hashes returns a hash for each full block of blockSize tokens, which stands for the block and everything before it.
func Hashes(tokens []uint32, blockSize int) []uint64 {
	return AppendHashes(make([]uint64, 0, len(tokens)/blockSize), tokens, blockSize)
}

// AppendHashes appends a hash for each full block of tokens behind those whose hashes there are.
func AppendHashes(hashes []uint64, tokens []uint32, blockSize int) []uint64 {
	for ; len(tokens) >= blockSize; tokens = tokens[blockSize:] {
		hashes = append(hashes, chained(last(hashes), tokens[:blockSize]))
	}
	return hashes
}

// SequenceHashes is [Hashes] with a hash more for a last block that is not full, as traces want it.
func SequenceHashes(tokens []uint32, blockSize int) []uint64 {
	hashes := make([]uint64, 0, (len(tokens)+blockSize-1)/blockSize)
	hashes = AppendHashes(hashes, tokens, blockSize)
	if rest := tokens[len(hashes)*blockSize:]; len(rest) > 0 {
		hashes = append(hashes, chained(last(hashes), rest))
	}
	return hashes
}

// last is the hash that stands for everything so far; 0 for nothing.
func last(hashes []uint64) uint64 {
	if len(hashes) == 0 {
		return 0
	}
	return hashes[len(hashes)-1]
}

// hashedTokens is how many tokens are hashed at once; a block of more is a chain of such parts.
const hashedTokens = 256

// chained is the hash of tokens behind what the parent stands for.
func chained(parent uint64, tokens []uint32) uint64 {
	var buf [4 * hashedTokens]byte
	for len(tokens) > 0 {
		part := tokens[:min(len(tokens), hashedTokens)]
		for i, token := range part {
			binary.LittleEndian.PutUint32(buf[4*i:], token)
		}
		parent = xxh3.HashSeed(buf[:4*len(part)], parent)
		tokens = tokens[len(part):]
	}
	return parent
}
