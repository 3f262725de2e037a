package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// agenticRow is one line of either version; the seen bits tell which fields it has.
type agenticRow struct {
	seen                       agenticField
	timestamp, delay, toolWait float64
	notBefore, apiTime         float64
	input, output, ordinal     uint64
	id, session, play, model   string
	hashes                     []uint64
	planned                    []uint32
	hints                      Hints
	waitFor, branches          []string
	dependencies               []agenticDependency
}

// agenticDependency is one of the dependencies of version 2.
type agenticDependency struct {
	from, trigger, relation string
	delay                   float64
	seen                    uint8
}

type agenticField uint32

const (
	agenticTimestamp agenticField = 1 << iota
	agenticInput
	agenticOutput
	agenticHashes
	agenticSession
	agenticDelay
	agenticPlanned
	agenticID
	agenticPriority
	agenticStrictPriority
	agenticPolicyClass
	agenticWaitFor
	agenticBranches
	agenticToolWait
	agenticPlay
	agenticModel
	agenticOrdinal
	agenticNotBefore
	agenticAPITime
	agenticDependencies
)

// agenticFields are the fields that count, by version; others are for people.
var agenticFields = [2]map[string]agenticField{
	{
		"timestamp": agenticTimestamp, "created_time": agenticTimestamp, "input_length": agenticInput, "input_tokens": agenticInput,
		"output_length": agenticOutput, "output_tokens": agenticOutput, "hash_ids": agenticHashes, "session_id": agenticSession,
		"delay": agenticDelay, "delay_ms": agenticDelay, "output_token_ids": agenticPlanned, "request_id": agenticID, "priority": agenticPriority,
		"strict_priority": agenticStrictPriority, "policy_class": agenticPolicyClass, "wait_for": agenticWaitFor, "branches": agenticBranches,
		"tool_wait_ms": agenticToolWait,
	},
	{
		"request_id": agenticID, "play_id": agenticPlay, "session_id": agenticSession, "model": agenticModel, "source_play_ordinal": agenticOrdinal,
		"input_length": agenticInput, "output_length": agenticOutput, "output_token_ids": agenticPlanned, "hash_ids": agenticHashes,
		"not_before_ms": agenticNotBefore, "recorded_api_time_ms": agenticAPITime, "priority": agenticPriority,
		"strict_priority": agenticStrictPriority, "policy_class": agenticPolicyClass, "dependencies": agenticDependencies,
	},
}

func (a *agentic) readLine(number int, data []byte) error {
	a.row = agenticRow{hashes: a.row.hashes[:0], dependencies: a.row.dependencies[:0]}
	fields := agenticFields[0]
	if a.header.version != 0 {
		fields = agenticFields[1]
	}
	line := jsonLine{data: data}
	err := line.object(func(key []byte) error {
		field := fields[string(key)]
		if ok, err := wanted(&line, &a.row.seen, field, key, givenTwiceElsewhere); !ok {
			return err
		}
		return a.row.read(&line, field, string(key))
	})
	if err != nil {
		return err
	}
	return a.addRow(number)
}

func (r *agenticRow) read(line *jsonLine, field agenticField, name string) (err error) {
	var whole int64
	switch field {
	case agenticTimestamp:
		r.timestamp, err = line.number(name)
	case agenticInput:
		r.input, err = line.uint(name)
	case agenticOutput:
		r.output, err = line.uint(name)
	case agenticHashes:
		r.hashes, err = line.uints(name, r.hashes)
	case agenticSession:
		r.session, err = line.textField(name)
	case agenticDelay:
		r.delay, err = line.number(name)
	case agenticPlanned:
		r.planned, err = line.tokens(name)
	case agenticID:
		r.id, err = line.textField(name)
	case agenticPolicyClass:
		r.hints.PolicyClass, err = line.textField(name)
	case agenticPriority:
		whole, err = line.integer(name, math.MinInt32, math.MaxInt32)
		r.hints.Priority = int32(whole)
	case agenticStrictPriority:
		whole, err = line.integer(name, 0, math.MaxUint32)
		r.hints.StrictPriority = uint32(whole)
	case agenticWaitFor:
		r.waitFor, err = line.texts(name)
	case agenticBranches:
		r.branches, err = line.texts(name)
	case agenticToolWait:
		r.toolWait, err = line.number(name)
	case agenticPlay:
		r.play, err = line.textField(name)
	case agenticModel:
		r.model, err = line.textField(name)
	case agenticOrdinal:
		r.ordinal, err = line.uint(name)
	case agenticNotBefore:
		r.notBefore, err = line.number(name)
	case agenticAPITime:
		r.apiTime, err = line.number(name)
	case agenticDependencies:
		err = r.readDependencies(line)
	}
	return err
}

// texts reads a list of strings.
func (l *jsonLine) texts(field string) (list []string, err error) {
	err = l.list(field, "a list of strings", func() error {
		text, err := l.textField(field)
		list = append(list, text)
		return err
	})
	return list, err
}

func (r *agenticRow) readDependencies(line *jsonLine) error {
	return line.list("dependencies", "a list of objects", func() error {
		var d agenticDependency
		err := line.nested("dependencies", func(key []byte) (err error) {
			bit := uint8(1)
			switch string(key) {
			case "request_id":
				d.from, err = line.textField("dependencies.request_id")
			case "trigger":
				bit = 2
				d.trigger, err = line.textField("dependencies.trigger")
			case "delay_ms":
				bit = 4
				d.delay, err = line.number("dependencies.delay_ms")
			case "relation":
				bit = 8
				d.relation, err = line.textField("dependencies.relation")
			default:
				return line.skip()
			}
			if err == nil && d.seen&bit != 0 {
				err = &fieldError{field: "dependencies." + string(key), message: "is given twice"}
			}
			d.seen |= bit
			return err
		})
		r.dependencies = append(r.dependencies, d)
		return err
	})
}

// addRow checks a row by itself and keeps its request; whether what it waits for exists shows at the end.
func (a *agentic) addRow(line int) error {
	r := &a.row
	check := a.checkFirst
	if a.header.version != 0 {
		check = a.checkSecond
	}
	if err := check(r); err != nil {
		return err
	}
	if before, again := a.byID[r.id]; again {
		return &fieldError{"request_id", shortened(r.id), fmt.Sprintf("line %d has it too; each request needs its own", a.added[before].line)}
	}
	q := GraphRequest{
		Request: Request{ID: r.id, Session: r.session, Hashes: r.hashes, PlannedOutput: r.planned, Hints: r.hints},
		Play:    r.play, Model: r.model, RecordedStartMs: math.NaN(), RecordedEndMs: math.NaN(),
	}
	if err := a.setLengths(&q.Request); err != nil {
		return err
	}
	a.src.cutHashes(q.Hashes)
	if a.builder == nil {
		a.builder = NewGraphBuilder(a.spec.name(), a.blockSize)
	}
	x := agenticAdded{line: line, timestampMs: math.NaN(), before: noRequest}
	a.setTimes(&q, &x, int32(len(a.added)))
	if before, known := a.latest[r.session]; known && r.session != "" {
		x.before = before
	}
	a.latest[r.session] = int32(len(a.added))
	a.byID[r.id] = a.builder.Add(q)
	a.added = append(a.added, x)
	for _, branch := range r.branches {
		a.branches = append(a.branches, agenticBranch{branch, line})
	}
	return nil
}

// checkFirst checks the fields that version 1 has.
func (a *agentic) checkFirst(r *agenticRow) error {
	switch {
	case r.seen&agenticID == 0:
		return &fieldError{field: "request_id", message: "is missing"}
	case strings.TrimSpace(r.id) == "":
		return &fieldError{field: "request_id", message: "is empty"}
	case r.seen&agenticHashes == 0:
		return &fieldError{field: "hash_ids", message: "is missing"}
	case r.seen&agenticOutput == 0:
		return &fieldError{field: "output_length", message: "is missing"}
	case r.seen&agenticInput == 0:
		r.input = uint64(len(r.hashes)) * uint64(a.blockSize)
	}
	for _, wait := range r.waitFor {
		if wait == r.id {
			return &fieldError{"wait_for", shortened(wait), "a request cannot wait for itself"}
		}
	}
	return cmp.Or(notNegative("timestamp", r.timestamp), notNegative("delay", r.delay), notNegative("tool_wait_ms", r.toolWait))
}

// notNegative checks a time in ms.
func notNegative(field string, ms float64) error {
	if ms < 0 || ms > maxTimeMs {
		return &fieldError{field, fmt.Sprint(ms), fmt.Sprintf("must be from 0 to %g ms", maxTimeMs)}
	}
	return nil
}

// checkSecond checks the fields that version 2 has.
func (a *agentic) checkSecond(r *agenticRow) error {
	for _, f := range []struct {
		field agenticField
		name  string
		text  *string
	}{
		{agenticID, "request_id", &r.id}, {agenticPlay, "play_id", &r.play}, {agenticSession, "session_id", &r.session}, {agenticModel, "model", &r.model},
		{agenticInput, "input_length", nil}, {agenticOutput, "output_length", nil}, {agenticHashes, "hash_ids", nil}, {agenticNotBefore, "not_before_ms", nil},
	} {
		if r.seen&f.field == 0 {
			return &fieldError{field: f.name, message: "is missing"}
		}
		if f.text != nil && strings.TrimSpace(*f.text) == "" {
			return &fieldError{field: f.name, message: "is empty"}
		}
	}
	if want := (r.input + uint64(a.blockSize) - 1) / uint64(a.blockSize); r.input > 0 && uint64(len(r.hashes)) != want {
		return &fieldError{field: "hash_ids", message: fmt.Sprintf("has %d ids; an input_length of %d needs exactly %d, of %d tokens each", len(r.hashes), r.input, want, a.blockSize)}
	}
	if err := cmp.Or(notNegative("not_before_ms", r.notBefore), notNegative("recorded_api_time_ms", r.apiTime)); err != nil {
		return err
	}
	for i := range r.dependencies {
		if err := r.dependencies[i].check(r.id); err != nil {
			return err
		}
	}
	return a.notePlay(r)
}

func (d *agenticDependency) check(id string) error {
	for i, name := range []string{"request_id", "trigger", "delay_ms", "relation"} {
		if d.seen&(1<<i) == 0 {
			return &fieldError{field: "dependencies." + name, message: "is missing"}
		}
	}
	relation, known := relationOf(d.relation)
	switch {
	case d.from == id:
		return &fieldError{"dependencies.request_id", shortened(id), "a request cannot wait for itself"}
	case !known:
		return &fieldError{"dependencies.relation", shortened(d.relation), "use sequence, spawn, join or replay_barrier"}
	case d.trigger != OnDispatch.String() && d.trigger != OnCompletion.String():
		return &fieldError{"dependencies.trigger", shortened(d.trigger), "use dispatch or completion"}
	case d.trigger == OnDispatch.String() && relation != Spawn:
		return &fieldError{"dependencies.trigger", shortened(d.trigger), "only the relation spawn may have it, not " + d.relation}
	}
	return notNegative("dependencies.delay_ms", d.delay)
}

func relationOf(name string) (Relation, bool) {
	for _, r := range []Relation{Sequence, Spawn, Join, Barrier} {
		if r.String() == name {
			return r, true
		}
	}
	return 0, false
}

// notePlay remembers the ordinal of the row's play, and that all rows of it say the same.
func (a *agentic) notePlay(r *agenticRow) error {
	ordinal := -1
	if r.seen&agenticOrdinal != 0 {
		ordinal = int(min(r.ordinal, math.MaxInt32))
	}
	before, known := a.ordinals[r.play]
	if known && before != ordinal {
		return &fieldError{"source_play_ordinal", ordinalText(ordinal), fmt.Sprintf("differs from the %s of earlier rows of play %s", ordinalText(before), r.play)}
	}
	a.ordinals[r.play] = ordinal
	return nil
}

func ordinalText(ordinal int) string {
	if ordinal < 0 {
		return "none"
	}
	return strconv.Itoa(ordinal)
}

// setLengths checks the row's lengths.
func (a *agentic) setLengths(q *Request) error {
	r := &a.row
	if err := checkPlanned(r.seen&agenticPlanned != 0, r.planned, r.output); err != nil {
		return err
	}
	if len(r.hashes) == 0 {
		return &fieldError{field: "hash_ids", message: "is empty"}
	}
	return q.setLengths(r.input, r.output, a.blockSize)
}

// setTimes says when the request may start and what it waits for.
func (a *agentic) setTimes(q *GraphRequest, x *agenticAdded, to int32) {
	r := &a.row
	if a.header.version != 0 {
		q.NotBeforeMs = r.notBefore
		if r.seen&agenticAPITime != 0 {
			q.RecordedStartMs, q.RecordedEndMs = r.notBefore, r.notBefore+r.apiTime
		}
		for _, d := range r.dependencies {
			edge := Edge{DelayMs: d.delay}
			edge.Relation, _ = relationOf(d.relation)
			if d.trigger == OnDispatch.String() {
				edge.Trigger = OnDispatch
			}
			a.waits = append(a.waits, agenticWait{to, d.from, x.line, edge})
		}
		return
	}
	if r.seen&agenticTimestamp != 0 {
		x.timestampMs = r.timestamp
		q.RecordedStartMs = r.timestamp
	}
	if len(r.waitFor) == 0 {
		q.NotBeforeMs = r.timestamp // a root's delay and tool wait count for nothing
		return
	}
	q.DelayMs, q.ToolWaitMs = r.delay+r.toolWait, r.toolWait
	for _, from := range r.waitFor {
		a.waits = append(a.waits, agenticWait{to, from, x.line, Edge{Relation: Sequence}})
	}
}

// checkWait reports a dependency on a request that is not in the trace, or in another play. It is false when there is nothing
// to wait for.
func (a *agentic) checkWait(w agenticWait) bool {
	field := "wait_for"
	if a.header.version != 0 {
		field = "dependencies.request_id"
	}
	from, known := a.byID[w.from]
	if !known {
		a.rows.add(a.path, w.line, &fieldError{field, shortened(w.from), "no request of the trace has this id"})
		return false
	}
	if mine, theirs := a.builder.extra[w.to].play, a.builder.extra[from].play; mine != theirs {
		plays := a.builder.plays.list
		a.rows.add(a.path, w.line, &fieldError{field, shortened(w.from), fmt.Sprintf("it is of play %s, and this request of play %s", plays[theirs], plays[mine])})
		return false
	}
	return true
}

// mend lets a turn that salvaging keeps, but not the turn before it, follow the one before that; false means that there is none.
func (a *agentic) mend(w *agenticWait) bool {
	before := a.added[w.to].before
	if !a.rows.salvage || w.edge.Relation != Sequence || before == noRequest || a.builder.extra[before].play != a.builder.extra[w.to].play {
		return false
	}
	w.from = a.builder.id(before)
	return true
}

// checkOrdinals reports plays whose ordinals are not 0, 1, 2 and so on.
func (a *agentic) checkOrdinals() {
	var ordinals []int
	for _, ordinal := range a.ordinals {
		if ordinal >= 0 {
			ordinals = append(ordinals, ordinal)
		}
	}
	if len(ordinals) == 0 || a.rows.salvage && len(a.rows.problems) > 0 { // the missing ones may be lost
		return
	}
	if len(ordinals) < len(a.ordinals) {
		a.rows.problem("%s: source_play_ordinal is given for %d of %d plays; give it for all or none", a.path, len(ordinals), len(a.ordinals))
		return
	}
	slices.Sort(ordinals)
	for want, found := range ordinals {
		if want != found {
			a.rows.problem("%s: source_play_ordinal values must be unique and contiguous from 0; expected %d, found %d", a.path, want, found)
			return
		}
	}
}

// comparePlays orders plays by ordinal, or by name.
func (a *agentic) comparePlays(x, y string) int {
	return cmp.Or(cmp.Compare(a.ordinals[x], a.ordinals[y]), strings.Compare(x, y))
}
