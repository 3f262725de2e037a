package huggingface

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern is a regular expression of a pre-tokenizer, compiled to a deterministic automaton: each match takes time linear in
// its length. Such expressions ask for one thing that package regexp lacks: (?!\S), that no text follows.
type pattern struct {
	ascii  [utf8.RuneSelf]uint16
	starts []rune   // where each interval of runes begins
	class  []uint16 // of each interval
	width  int      // entries of a state in next: one a class, and one for the end of the text
	next   []uint32 // the next state, shifted by one, and whether a match ends here
}

// dead is the state in which nothing can match any more, first the one in which a match begins.
const (
	dead  = 0
	first = 1
)

// maxStates bounds the automaton; the patterns of known tokenizers have less than a hundred.
const maxStates = 4096

// compile makes a pattern of an expression in the syntax that the library uses, Oniguruma's.
func compile(expr string) (*pattern, error) {
	translated, err := translate(expr)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", expr, err)
	}
	tree, err := syntax.Parse(translated, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", expr, err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", expr, err)
	}
	p := &pattern{}
	if err := p.build(prog); err != nil {
		return nil, fmt.Errorf("pattern %q: %w", expr, err)
	}
	return p, nil
}

// match returns the end of the match that begins where text does; -1 if there is none.
func (p *pattern) match(text string) int {
	end, state := -1, uint32(first)
	for at := 0; ; {
		class, size := p.width-1, 1
		if at < len(text) {
			if b := text[at]; b < utf8.RuneSelf {
				class = int(p.ascii[b])
			} else {
				var r rune
				r, size = utf8.DecodeRuneInString(text[at:])
				class = p.classOf(r)
			}
		}
		step := p.next[int(state)*p.width+class]
		if step&1 != 0 {
			end = at
		}
		if state = step >> 1; state == dead {
			return end
		}
		at += size
	}
}

func (p *pattern) classOf(r rune) int {
	at, exact := slices.BinarySearch(p.starts, r)
	if !exact {
		at--
	}
	return int(p.class[at])
}

// whitespace is what \s means there; package regexp takes the ASCII ones only.
const whitespace = `\t-\r \x{85}\p{Z}`

func isSpace(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Z, r) }

// errUnsupported lists what translate refuses.
var errUnsupported = errors.New(`it has ^, $, \b, \A, \z, a look-around other than (?!\S), a back-reference, ` +
	`or a class within a class, which are not supported`)

// looksAround finds groups that look ahead or back, or never go back.
var looksAround = regexp.MustCompile(`^\(\?[=!<>]`)

// escapes are classes that mean more there than here, without their brackets.
var escapes = map[byte]string{'s': whitespace, 'd': `\p{Nd}`, 'w': `\p{L}\p{M}\p{Nd}\p{Pc}`}

// translate writes an expression in the syntax of package regexp. (?!\S) becomes $, which build understands as that.
func translate(expr string) (string, error) {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(expr); i++ {
		c := expr[i]
		switch {
		case c == '\\' && i+1 < len(expr):
			i++
			text, err := escape(expr[i], inClass)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
		case inClass:
			if c == '[' || c == '&' && strings.HasPrefix(expr[i:], "&&") {
				return "", errUnsupported
			}
			inClass = c != ']'
			b.WriteByte(c)
		case c == '[':
			inClass = true
			b.WriteByte(c)
			for _, first := range []string{"^", "]"} { // a bracket that is first is none
				if strings.HasPrefix(expr[i+1:], first) {
					b.WriteString(first)
					i++
				}
			}
		case strings.HasPrefix(expr[i:], `(?!\S)`):
			b.WriteByte('$')
			i += len(`(?!\S)`) - 1
		case c == '^' || c == '$' || looksAround.MatchString(expr[i:]):
			return "", errUnsupported
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// escape translates what follows a backslash.
func escape(c byte, inClass bool) (string, error) {
	lower := c | 0x20
	if class, ok := escapes[lower]; ok && (c == lower || c == lower&^0x20) {
		switch {
		case c == lower && inClass:
			return class, nil
		case c == lower:
			return "[" + class + "]", nil
		case !inClass:
			return "[^" + class + "]", nil
		}
		return "", errUnsupported
	}
	if strings.IndexByte("bBAzZGhHkRX123456789", c) >= 0 {
		return "", errUnsupported
	}
	return `\` + string(c), nil
}

// build makes the automaton of a program, state by state.
func (p *pattern) build(prog *syntax.Prog) error {
	p.classify(prog)
	b := builder{p: p, prog: prog, number: map[string]uint32{}}
	b.state(nil) // dead
	b.state([]uint32{uint32(prog.Start)})
	for s := 0; s < len(b.threads); s++ {
		if len(b.threads) > maxStates {
			return fmt.Errorf("it needs more than %d states", maxStates)
		}
		for class := range p.width {
			p.next = append(p.next, b.step(b.threads[s], class))
		}
	}
	return nil
}

// classify finds the classes of runes that no instruction tells apart.
func (p *pattern) classify(prog *syntax.Prog) {
	p.starts = boundaries(prog)
	classes := map[string]uint16{}
	for _, r := range p.starts {
		seen := make([]byte, 0, len(prog.Inst)+1)
		for i := range prog.Inst {
			seen = append(seen, boolByte(takes(&prog.Inst[i], r)))
		}
		seen = append(seen, boolByte(isSpace(r)))
		class, ok := classes[string(seen)]
		if !ok {
			class = uint16(len(classes))
			classes[string(seen)] = class
		}
		p.class = append(p.class, class)
	}
	p.width = len(classes) + 1
	for r := range p.ascii {
		p.ascii[r] = uint16(p.classOf(rune(r)))
	}
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// takes reports whether an instruction takes a rune.
func takes(inst *syntax.Inst, r rune) bool {
	switch inst.Op {
	case syntax.InstRune, syntax.InstRune1:
		return inst.MatchRune(r)
	case syntax.InstRuneAny:
		return true
	case syntax.InstRuneAnyNotNL:
		return r != '\n'
	}
	return false
}

// boundaries are the runes at which some instruction may begin or cease to take them, and those at which white space does.
func boundaries(prog *syntax.Prog) []rune {
	at := []rune{0, '\n', '\n' + 1}
	add := func(from, to rune) { at = append(at, from, to+1) }
	for i := range prog.Inst {
		runes := prog.Inst[i].Rune
		if len(runes) == 1 {
			add(runes[0], runes[0])
			for r := unicode.SimpleFold(runes[0]); r != runes[0]; r = unicode.SimpleFold(r) {
				add(r, r)
			}
			continue
		}
		for k := 0; k+1 < len(runes); k += 2 {
			add(runes[k], runes[k+1])
		}
	}
	for _, table := range []*unicode.RangeTable{unicode.White_Space, unicode.Z} {
		for _, r := range table.R16 {
			for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
				add(c, c)
			}
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// builder numbers states: the threads that are alive, the one that is preferred first.
type builder struct {
	p       *pattern
	prog    *syntax.Prog
	number  map[string]uint32
	threads [][]uint32
}

func (b *builder) state(threads []uint32) uint32 {
	key := make([]byte, 0, 4*len(threads))
	for _, pc := range threads {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	s, ok := b.number[string(key)]
	if !ok {
		s = uint32(len(b.threads))
		b.number[string(key)] = s
		b.threads = append(b.threads, threads)
	}
	return s
}

// step is the entry of next for threads that see a class of runes, or the end of the text.
func (b *builder) step(threads []uint32, class int) uint32 {
	end := class == b.p.width-1
	var r rune
	if !end {
		r = b.p.starts[slices.Index(b.p.class, uint16(class))]
	}
	s := stepping{prog: b.prog, r: r, end: end, blank: end || isSpace(r), seen: make([]bool, len(b.prog.Inst))}
	for _, pc := range threads {
		if s.follow(pc); s.matched {
			break // what is preferred less does not count
		}
	}
	return b.state(s.out)<<1 | uint32(boolByte(s.matched))
}

// stepping follows threads through one rune.
type stepping struct {
	prog       *syntax.Prog
	r          rune
	end, blank bool // the end of the text; that or white space
	seen       []bool
	out        []uint32
	matched    bool
}

func (s *stepping) follow(pc uint32) {
	if s.seen[pc] || s.matched {
		return
	}
	s.seen[pc] = true
	inst := &s.prog.Inst[pc]
	switch inst.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		s.follow(inst.Out)
		s.follow(inst.Arg)
	case syntax.InstCapture, syntax.InstNop:
		s.follow(inst.Out)
	case syntax.InstEmptyWidth:
		if s.blank { // the only one is (?!\S)
			s.follow(inst.Out)
		}
	case syntax.InstMatch:
		s.matched = true
	case syntax.InstFail:
	default:
		if !s.end && takes(inst, s.r) && !slices.Contains(s.out, inst.Out) {
			s.out = append(s.out, inst.Out)
		}
	}
}
