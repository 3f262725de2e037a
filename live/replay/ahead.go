package replay

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/servegrid/servegrid/live"
)

// How far ahead prompts are made: so that no request waits for its own, and that they take little memory.
const (
	aheadMs       = 1000
	aheadRequests = 4096
	aheadTokens   = 8 << 20
)

// prompt is that of one request: made once, by whoever needs it first, and forgotten as soon as it is taken, since it is large
// and tens of thousands of requests may be under way.
type prompt struct {
	fill     func() []live.Message
	begun    atomic.Bool
	made     chan struct{}
	messages atomic.Pointer[[]live.Message]
}

func newPrompt(fill func() []live.Message) *prompt {
	return &prompt{fill: fill, made: make(chan struct{})}
}

// make makes the prompt, or waits until somebody else has.
func (p *prompt) make() {
	if !p.begun.CompareAndSwap(false, true) {
		<-p.made
		return
	}
	messages := p.fill()
	p.messages.Store(&messages)
	close(p.made)
}

// take returns the prompt; when it has been taken before, another copy of it.
func (p *prompt) take() []live.Message {
	p.make()
	if messages := p.messages.Swap(nil); messages != nil {
		return *messages
	}
	return p.fill()
}

// makers make prompts ahead of their time.
type makers struct {
	todo chan *prompt
	done sync.WaitGroup
}

// startMakers starts goroutines for it, which stop ends.
func startMakers() *makers {
	m := &makers{todo: make(chan *prompt, aheadRequests)}
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		m.done.Go(func() {
			for p := range m.todo {
				p.make()
			}
		})
	}
	return m
}

// add asks for a prompt. When there are too many to do its request makes it itself.
func (m *makers) add(p *prompt) {
	select {
	case m.todo <- p:
	default:
	}
}

// stop ends the goroutines when they have done what was asked for.
func (m *makers) stop() {
	close(m.todo)
	m.done.Wait()
}
