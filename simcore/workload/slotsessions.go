package workload

import "container/list"

// sessionNumbers numbers the sessions of requests that come one by one. Those with a name keep their number until so many
// others were seen since that it is needed for another one. Each slot has a number besides, for requests that stand alone.
type sessionNumbers struct {
	slots, most int
	byName      map[string]*list.Element
	byUse       *list.List // of *namedSession, the one that was seen last in front
}

type namedSession struct {
	name   string
	number int32
}

// rememberedSessions is how many sessions are remembered at least, beside those that slots can have.
const rememberedSessions = 1 << 16

func newSessionNumbers(slots int) sessionNumbers {
	return sessionNumbers{slots: slots, most: 2*slots + rememberedSessions, byName: map[string]*list.Element{}, byUse: list.New()}
}

// number returns the number of the session of the request in a slot, and whether that was another session's before or nobody's.
func (s *sessionNumbers) number(slot int32, name string) (number int32, fresh bool) {
	if name == "" {
		return slot, true
	}
	if e, ok := s.byName[name]; ok {
		s.byUse.MoveToFront(e)
		return e.Value.(*namedSession).number, false
	}
	if n := s.byUse.Len(); n < s.most-s.slots {
		e := s.byUse.PushFront(&namedSession{name, int32(s.slots + n)})
		s.byName[name] = e
		return e.Value.(*namedSession).number, true
	}
	e := s.byUse.Back()
	oldest := e.Value.(*namedSession)
	delete(s.byName, oldest.name)
	oldest.name = name
	s.byName[name] = e
	s.byUse.MoveToFront(e)
	return oldest.number, true
}
