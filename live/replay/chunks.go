package replay

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/servegrid/servegrid/live"
)

// ChunkWriter writes everything that comes back as JSON Lines, compressed with gzip: when, of which request, and the data as it
// was read. It is safe for concurrent use.
type ChunkWriter struct {
	mu      sync.Mutex
	buffer  *bufio.Writer
	gzip    *gzip.Writer
	started time.Time
	line    []byte
	err     error
}

// NewChunkWriter returns a writer into a file that the caller closes after Close.
func NewChunkWriter(w io.Writer) *ChunkWriter {
	buffer := bufio.NewWriterSize(w, 1<<16)
	compressed, _ := gzip.NewWriterLevel(buffer, gzip.BestSpeed) // a level that there is
	return &ChunkWriter{buffer: buffer, gzip: compressed}
}

// Begin says when ms 0 is.
func (c *ChunkWriter) Begin(started time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = started
}

// Add writes an event.
func (c *ChunkWriter) Add(call *live.Call, e live.Event) {
	id, _ := json.Marshal(call.ID) // every text can be marshalled
	data, _ := json.Marshal(string(e.Data))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line = append(c.line[:0], `{"ms":`...)
	c.line = strconv.AppendFloat(c.line, float64(e.At.Sub(c.started))/float64(time.Millisecond), 'f', 3, 64)
	c.line = append(append(c.line, `,"request_id":`...), id...)
	c.line = append(append(append(c.line, `,"data":`...), data...), '}', '\n')
	if _, err := c.gzip.Write(c.line); c.err == nil {
		c.err = err
	}
}

// Close writes what is left. The error is the first one of all writing.
func (c *ChunkWriter) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.err, c.gzip.Close(), c.buffer.Flush())
}
