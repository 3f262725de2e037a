package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/servegrid/servegrid/gridspec"
	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/sweep/storage"
)

// maxArgumentBytes bounds a file that a flag names in the place of JSON.
const maxArgumentBytes = 16 << 20

// jsonSection reads the JSON object that a flag gives, or that is in the file or at the URL which it names.
func jsonSection(flag, text string) (map[string]any, error) {
	shown := gridspec.Excerpt(text)
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("%s is empty; give a JSON object or the path of one, or leave it out", flag)
	}
	if isArgumentFile(text) {
		data, err := readArgument(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		shown, text = gridspec.Excerpt(files.Shown(text))+": its content", string(data)
	}
	if path := strings.TrimSpace(text); strings.HasSuffix(path, ".json") && !strings.HasPrefix(path, "{") && !isFile(path) {
		return nil, fmt.Errorf("%s: there is no file %s", flag, shown)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber() // seeds have 64 bits
	var value any
	err := decoder.Decode(&value)
	if err == nil && decoder.More() {
		err = errors.New("there is more text after it")
	}
	section, isObject := value.(map[string]any)
	if err == nil && !isObject {
		err = errors.New("write it in braces")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s is not a JSON object: %w", flag, shown, err)
	}
	again := json.NewDecoder(strings.NewReader(text))
	again.UseNumber() // which number is too large shows when it is bound
	twice, err := repeatedKeys(again)
	if err == nil && len(twice) > 0 {
		err = fmt.Errorf("%s holds the same key twice: %s; write it once", shown, gridspec.Excerpt(strings.Join(twice, ", ")))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return section, nil
}

// isArgumentFile reports whether a flag names a file or a URL in the place of what is in it. A pipe is a file, too.
func isArgumentFile(text string) bool {
	if files.IsURL(text) {
		return true
	}
	info, err := os.Stat(text)
	return err == nil && !info.IsDir()
}

// readArgument reads a file that a flag names. As a spec, it may lie where the files of a spec may not: people name it themselves.
func readArgument(path string) (data []byte, err error) {
	var f io.ReadCloser
	var anywhere storage.System
	if files.IsURL(path) {
		f, err = anywhere.Open(context.Background(), path)
	} else {
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, err
	}
	data, err = io.ReadAll(io.LimitReader(f, maxArgumentBytes+1))
	if err == nil && len(data) > maxArgumentBytes {
		err = fmt.Errorf("%s is larger than %d MiB; name a JSON file", files.Shown(path), maxArgumentBytes>>20)
	}
	return data, errors.Join(err, f.Close(), anywhere.Close())
}

// repeatedKeys lists the keys that an object of the next value holds more than once. Decoding into a map would keep
// the last.
func repeatedKeys(d *json.Decoder) ([]string, error) {
	open, err := d.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return nil, err
	}
	var twice []string
	seen := map[json.Token]bool{}
	for d.More() {
		if open == json.Delim('{') {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			if seen[key] {
				twice = append(twice, fmt.Sprint(key))
			}
			seen[key] = true
		}
		inner, err := repeatedKeys(d)
		if err != nil {
			return nil, err
		}
		twice = append(twice, inner...)
	}
	_, err = d.Token()
	return twice, err
}
