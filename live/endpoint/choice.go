package endpoint

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/servegrid/servegrid/live/realtime"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/engine"
)

// choice is one of the answers to a request. To the deployment each is a request of its own.
type choice struct {
	exchange *exchange
	// id is the name of the deployment's request, index the place among the answers that are sent; [unsent] for others.
	id    string
	index int

	answer answerPlan
	stream Stream
	meter  meter
	// sent counts the tokens that were told, cached the prompt tokens that were in the prefix cache.
	sent, cached int
	// begun says that a stream has its first chunk, ended that the deployment's request has ended.
	begun, ended bool
}

// unsent is the index of an answer that was made so that others could be chosen.
const unsent = -1

// newChoices makes the choices of an exchange: prompt after prompt, made of each, of which the first are sent.
func (e *exchange) newChoices(plans []answerPlan, made, sent int) {
	e.choices = make([]choice, len(plans))
	for i := range plans {
		c := &e.choices[i]
		*c = choice{exchange: e, id: e.id, index: unsent, answer: plans[i], meter: meter{metrics: e.server.metrics}}
		if len(plans) > 1 {
			c.id += "-" + strconv.Itoa(i)
		}
		if prompt, among := i/made, i%made; among < sent {
			c.index = prompt*sent + among
		}
	}
}

// arrival is what has come of a choice.
type arrival struct {
	choice   *choice
	progress realtime.Progress
	err      error
}

// submit lets the requests of all choices arrive.
func (e *exchange) submit() error {
	requests := make([]simcore.OnlineRequest, len(e.choices))
	for i := range requests {
		requests[i] = e.choices[i].answer.request(e.session)
	}
	streams, err := e.server.opt.Deployment.Submit(requests...)
	if err != nil {
		return err
	}
	for i := range streams {
		e.choices[i].stream = withFaults(streams[i], e.faults, e.server.opt.Speedup)
	}
	if len(streams) > 1 {
		e.follow()
	}
	return nil
}

// follow reads the streams of several choices at once. A reader waits until what it has is taken, and what comes meanwhile
// collects in its stream.
func (e *exchange) follow() {
	e.ctx, e.stop = context.WithCancel(e.ctx)
	e.came = make(chan arrival)
	for i := range e.choices {
		c := &e.choices[i]
		e.readers.Go(func() {
			for {
				p, err := c.next(e.ctx)
				select {
				case e.came <- arrival{c, p, err}:
				case <-e.ctx.Done():
					return
				}
				if err != nil || p.Ended {
					return
				}
			}
		})
	}
}

// leave ends the readers of several choices.
func (e *exchange) leave() {
	if e.stop != nil {
		e.stop()
		e.readers.Wait()
	}
}

// next waits for what comes next of any of the choices. Without progress the client has gone, or the server ends, and all
// choices are given up.
func (e *exchange) next() (*choice, realtime.Progress, bool) {
	var a arrival
	if e.came == nil {
		a.choice = &e.choices[0]
		a.progress, a.err = a.choice.next(e.ctx)
	} else {
		select {
		case a = <-e.came:
		case <-e.ctx.Done():
			a.err = e.ctx.Err()
		}
	}
	if a.err != nil {
		e.giveUp()
	}
	return a.choice, a.progress, a.err == nil
}

// giveUp ends the requests whose client has gone or does not get the rest, and waits for their end out of the client's way.
func (e *exchange) giveUp() {
	e.leave()
	for i := range e.choices {
		if c := &e.choices[i]; !c.ended {
			c.giveUp()
		}
	}
}

// next waits for what comes next of a choice, and counts it.
func (c *choice) next(ctx context.Context) (realtime.Progress, error) {
	p, err := c.stream.Next(ctx)
	if p.Tokens > 0 {
		c.cached = p.Cached
	}
	c.meter.came(&p, c.answer.input)
	if p.Ended {
		c.end(&p)
	}
	return p, err
}

// end tells of the end of a request.
func (c *choice) end(p *realtime.Progress) {
	c.ended = true
	c.meter.ended(p, c.finish(int(p.Record.Life.Tokens)))
	if e := c.exchange; e.server.opt.Served != nil {
		e.server.opt.Served(Served{ID: c.id, Session: e.session, Record: *p.Record})
	}
}

// lastWord is how long the end of a request that was given up is waited for.
const lastWord = 10 * time.Second

func (c *choice) giveUp() {
	c.stream.Cancel()
	c.exchange.server.abandoned.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), lastWord)
		defer cancel()
		for {
			if p, err := c.next(ctx); err != nil || p.Ended {
				return
			}
		}
	})
}

// finish is the reason for which an answer of so many tokens ends.
func (c *choice) finish(tokens int) string {
	if c.answer.whole && tokens >= len(c.answer.text) {
		return "stop"
	}
	return "length"
}

// failure says why a request that has ended has no complete answer; nil if it has.
func (c *choice) failure(p *realtime.Progress) *refusal {
	input, output := c.answer.input, len(c.answer.text)
	switch p.Record.Life.State {
	case engine.Completed:
		return nil
	case engine.Rejected:
		if p.Record.Life.RoutedMs < 0 && c.exchange.server.opt.Config.Router.Classes != nil {
			return overloaded("The router's queue for requests of this class is full. Try again later.")
		}
		return badRequest("messages", "The request can never be served: a worker has no room for its %d input tokens and %d output tokens.", input, output)
	case engine.Failed:
		return newRefusal(http.StatusInternalServerError, "", "The request can never be served: no decode worker has room for its %d input tokens and %d output tokens.", input, output)
	}
	return overloaded("The request was given up.")
}
