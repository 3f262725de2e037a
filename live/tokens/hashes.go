package tokens

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// Hashes returns a hash for each full block of blockSize tokens, which stands for the block and everything before it.
func Hashes(tokens []uint32, blockSize int) []uint64 {
	return AppendHashes(make([]uint64, 0, len(tokens)/blockSize), tokens, blockSize)
}

// AppendHashes appends what [Hashes] returns.
func AppendHashes(hashes []uint64, tokens []uint32, blockSize int) []uint64 {
	parent := uint64(0)
	for ; len(tokens) >= blockSize; tokens = tokens[blockSize:] {
		parent = chained(parent, tokens[:blockSize])
		hashes = append(hashes, parent)
	}
	return hashes
}

// SequenceHashes is [Hashes] with a hash more for a last block that is not full, as traces want it.
func SequenceHashes(tokens []uint32, blockSize int) []uint64 {
	hashes := make([]uint64, 0, (len(tokens)+blockSize-1)/blockSize)
	hashes = AppendHashes(hashes, tokens, blockSize)
	rest := tokens[len(hashes)*blockSize:]
	if len(rest) == 0 {
		return hashes
	}
	parent := uint64(0)
	if len(hashes) > 0 {
		parent = hashes[len(hashes)-1]
	}
	return append(hashes, chained(parent, rest))
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
