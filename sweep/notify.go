package sweep

import "sync"

// notifier calls the observer, one event after another, without ever making the sweep wait.
type notifier struct {
	observer Observer
	mu       sync.Mutex
	events   []func(Observer)
	closed   bool
	wake     chan struct{} // holds at most one token: there is something new
	done     chan struct{}
}

func startNotifier(o Observer) *notifier {
	n := &notifier{observer: o, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go n.loop()
	return n
}

// push adds an event.
func (n *notifier) push(event func(Observer)) {
	if _, nobody := n.observer.(NopObserver); nobody {
		return // events hold rows, and many may wait
	}
	n.mu.Lock()
	n.events = append(n.events, event)
	n.mu.Unlock()
	signal(n.wake)
}

// close waits until the observer has heard everything.
func (n *notifier) close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	signal(n.wake)
	<-n.done
}

func (n *notifier) loop() {
	defer close(n.done)
	for range n.wake {
		n.mu.Lock()
		events, closed := n.events, n.closed
		n.events = nil
		n.mu.Unlock()
		for _, event := range events {
			event(n.observer)
		}
		if closed {
			return
		}
	}
}

// signal puts a token into a channel that holds one, unless it is there.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
