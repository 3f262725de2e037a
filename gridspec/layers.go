package gridspec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"

	"github.com/servegrid/servegrid/simcore/files"
)

// EnvPrefix starts the environment variables that override a spec. Two underscores separate the parts of a key
// path, so SERVEGRID_ENGINE__BLOCK_SIZE overrides engine.block_size.
const EnvPrefix = "SERVEGRID_"

// programVariables start like overrides of a spec and are settings of the program.
var programVariables = []string{"SERVEGRID_ALLOW", "SERVEGRID_MAX_EXPANSION"}

// keyDelimiter separates key paths inside koanf. It cannot be a dot, because axes have dotted names.
const keyDelimiter = "\x00"

// layered is the merged tree of file, environment and --set, with the parser that knows where keys come from.
type layered struct {
	koanf  *koanf.Koanf
	parser *strictParser
	// overridden lists the key paths that environment and --set wrote.
	overridden []string
	merged     map[string]any
}

// tree is what all layers give together, for reading.
func (l *layered) tree() map[string]any {
	if l.merged == nil {
		l.merged = l.koanf.Raw()
	}
	return l.merged
}

// loadLayers reads the layers of a source in order; later ones replace what they name. Problems that leave a tree
// stay in its parser.
func loadLayers(src Source) (*layered, error) {
	data, err := src.read()
	if err != nil {
		return nil, err
	}
	format := src.Format
	if format == "" {
		if format, err = formatOf(src.Path); err != nil {
			return nil, err
		}
	}
	if !slices.Contains([]Format{YAML, TOML, JSON}, format) {
		return nil, fmt.Errorf("format %q is not known; use yaml, toml or json", format)
	}
	l := &layered{
		koanf:  koanf.New(keyDelimiter),
		parser: &strictParser{collector: collector{origins: newOrigins()}, format: format, name: src.name()},
	}
	if err := l.koanf.Load(fileBytes(data), l.parser); err != nil {
		return nil, err
	}
	if err := l.loadEnv(src.Env); err != nil {
		return nil, err
	}
	for _, set := range src.Set {
		if err := l.loadSet(set); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// fileBytes is the koanf provider of a file that was read already, within its size limit.
type fileBytes []byte

func (b fileBytes) ReadBytes() ([]byte, error) { return b, nil }

func (b fileBytes) Read() (map[string]any, error) {
	return nil, errors.New("a spec file needs a parser")
}

func (src Source) read() ([]byte, error) {
	if src.Data != nil || src.Path == "" {
		return src.Data, nil
	}
	f, err := files.Or(src.Files).Open(context.Background(), src.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSpecBytes+1))
}

// name is what problems call the source.
func (src Source) name() string {
	if src.Path == "" || src.Path == "-" {
		return "spec"
	}
	return src.Path
}

// loadEnv applies the environment variables with the prefix, in order of their names.
func (l *layered) loadEnv(environ []string) error {
	if len(environ) == 0 {
		return nil
	}
	provider := env.Provider("", env.Opt{
		Prefix:      EnvPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			return name, value
		},
	})
	return l.koanf.Load(provider, nil, koanf.WithMergeFunc(func(variables, tree map[string]any) error {
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			if slices.Contains(programVariables, name) {
				continue
			}
			parts := strings.Split(strings.ToLower(strings.TrimPrefix(name, EnvPrefix)), "__")
			if len(parts) > 1 || isTopLevel(parts[0]) {
				l.override(tree, name, parts, variables[name].(string))
			} else {
				l.foreignVariable(name, parts[0])
			}
		}
		return nil
	}))
}

// foreignVariable handles a variable that names no key. It may belong to another program, unless it is a key path
// with single underscores.
func (l *layered) foreignVariable(name, rest string) {
	for _, path := range specPaths() {
		if strings.ReplaceAll(path, ".", "_") == rest {
			l.refuse(name, "", "this variable changes nothing; for %s write %s%s", path, EnvPrefix, strings.ToUpper(strings.ReplaceAll(path, ".", "__")))
			return
		}
	}
	p := Problem{Where: name}
	p.Allowed = "this variable names no key of a spec and changes nothing; two underscores separate the parts of a key path"
	l.parser.warnings = append(l.parser.warnings, p)
}

func isTopLevel(name string) bool {
	return slices.ContainsFunc(jsonFields(reflect.TypeFor[document]()), func(f jsonField) bool { return f.name == name })
}

// specPaths lists the key paths of settings, and of the keys that say how a spec is run.
func specPaths() []string {
	paths := configKeys.paths()
	for _, section := range jsonFields(reflect.TypeFor[document]()) {
		if t := section.typ; t.Kind() == reflect.Struct && !configKeys.isSection(section.name) {
			for _, f := range jsonFields(t) {
				paths = append(paths, join(section.name, f.name))
			}
		}
	}
	return paths
}

// loadSet applies one --set flag, "key.path=value".
func (l *layered) loadSet(set string) error {
	path, value, ok := strings.Cut(set, "=")
	where := "--set " + Excerpt(files.ShownIn(set))
	if !ok || path == "" {
		l.refuse(where, "", "write key.path=value")
		return nil
	}
	provider := confmap.Provider(map[string]any{path: value}, "")
	return l.koanf.Load(provider, nil, koanf.WithMergeFunc(func(flag, tree map[string]any) error {
		l.override(tree, where, strings.Split(path, "."), value)
		return nil
	}))
}

func (l *layered) refuse(where, path, format string, args ...any) {
	p := Problem{Where: where}
	p.Path, p.Allowed = path, fmt.Sprintf(format, args...)
	l.parser.problems = append(l.parser.problems, p)
}

// override replaces the value at a key path of the tree. What an override names it replaces whole.
func (l *layered) override(tree map[string]any, where string, parts []string, text string) {
	if slices.Contains(parts, "") {
		l.refuse(where, "", "the key path has an empty part")
		return
	}
	v, err := parseOverride(text)
	if err != nil {
		l.refuse(where, "", "%v", err)
		return
	}
	keys := overrideKeys(parts)
	root, path := tree, ""
	for _, k := range keys[:len(keys)-1] {
		path = join(path, k)
		inner, isMap := tree[k].(map[string]any)
		if !isMap && tree[k] != nil {
			l.refuse(where, path, "this is no mapping with keys of its own; set it whole")
			return
		}
		if inner == nil {
			inner = map[string]any{}
			tree[k] = inner
			l.parser.origins.set(path, where)
		}
		tree = inner
	}
	last := keys[len(keys)-1]
	tree[last] = v
	path = join(path, last)
	l.parser.origins.replace(path, where)
	l.parser.normalize(root)
	l.overridden = append(l.overridden, path)
}

// overrideKeys joins the parts of a key path that are one key in the tree: axes have dotted names.
func overrideKeys(parts []string) []string {
	axes := 0 // where the dotted name starts
	switch parts[0] {
	case "grid", "zip":
		axes = 1
	case "cases", "random", "lhs", "sobol":
		axes = 2
	default:
		parts = strings.Split(canonicalPath(strings.Join(parts, ".")), ".")
	}
	if axes == 0 || len(parts) <= axes || parts[1] == "samples" && axes == 2 && parts[0] != "cases" {
		return parts
	}
	return append(slices.Clone(parts[:axes]), canonicalPath(strings.Join(parts[axes:], ".")))
}
