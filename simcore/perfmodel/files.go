package perfmodel

import (
	"sync"

	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
	"github.com/servegrid/servegrid/simcore/perfmodel/profile"
	"github.com/servegrid/servegrid/simcore/perfmodel/tables"
)

// Files that configurations name are read once by a program: what is simulated is then what the points were named after,
// even when a file changes meanwhile.
var (
	profiles files[*profile.Profile]
	models   files[namedModel]
	folders  files[*tables.Set]
)

// namedModel is a model with the dtype of its checkpoint.
type namedModel struct {
	catalogue.Model
	dtype string
}

// files remembers what was read from a path, be it an error.
type files[T any] struct {
	mu   sync.Mutex
	read map[string]outcome[T]
}

type outcome[T any] struct {
	value T
	err   error
}

func (f *files[T]) get(path string, read func(string) (T, error)) (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.read[path]; ok {
		return known.value, known.err
	}
	var now outcome[T]
	now.value, now.err = read(path)
	if f.read == nil {
		f.read = map[string]outcome[T]{}
	}
	f.read[path] = now
	return now.value, now.err
}

func readProfile(path string) (*profile.Profile, error) { return profiles.get(path, profile.Read) }

// tableSet returns the tables of a folder, or those that servegrid contains.
func tableSet(folder string) (*tables.Set, error) {
	if folder == "" {
		return tables.Embedded(), nil
	}
	return folders.get(folder, tables.Open)
}

// readModel returns the model with a name, or of a config.json, and the dtype of its checkpoint.
func readModel(name string) (catalogue.Model, string, error) {
	if !IsModelFile(name) {
		return catalogue.FindModel(name)
	}
	m, err := models.get(name, func(path string) (namedModel, error) {
		m, err := catalogue.ReadModel(path)
		if err != nil {
			return namedModel{}, err
		}
		return namedModel{m, m.DType()}, nil
	})
	return m.Model, m.dtype, err
}
