package files

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// scheme begins a URL. One letter would be a drive.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+://`)

// IsURL reports whether a path is the URL of an object or of a folder in a bucket, such as s3://bucket/key.
func IsURL(path string) bool { return scheme.MatchString(path) }

// splitURL takes a URL apart: scheme and bucket, the key without a slash before it, and the parameters with their mark.
func splitURL(url string) (bucket, key, parameters string) {
	url, parameters, marked := strings.Cut(url, "?")
	if marked {
		parameters = "?" + parameters
	}
	head := scheme.FindString(url)
	name, key, _ := strings.Cut(url[len(head):], "/")
	return head + name, key, parameters
}

// Join returns the path of a file below a folder, which may be at a URL. Parameters of the URL stay. A name cannot lead out of
// a bucket.
func Join(folder string, names ...string) string {
	if !IsURL(folder) {
		return filepath.Join(append([]string{folder}, names...)...)
	}
	bucket, key, parameters := splitURL(folder)
	for _, name := range names {
		key += "/" + filepath.ToSlash(name)
	}
	return bucket + path.Clean("/"+key) + parameters
}

// Dir returns the folder of a file, which may be at a URL.
func Dir(file string) string {
	if !IsURL(file) {
		return filepath.Dir(file)
	}
	bucket, key, parameters := splitURL(file)
	return bucket + path.Dir("/"+key) + parameters
}

// Base returns the last part of a path or URL.
func Base(file string) string {
	if !IsURL(file) {
		return filepath.Base(file)
	}
	bucket, key, _ := splitURL(file)
	if key = strings.Trim(key, "/"); key == "" {
		return strings.TrimPrefix(bucket, scheme.FindString(bucket))
	}
	return path.Base(key)
}

// From returns a path that starts at a folder unless it is absolute or a URL. An empty one and the standard input, "-", stay.
func From(folder, path string) string {
	if path == "" || path == "-" || filepath.IsAbs(path) || IsURL(path) {
		return path
	}
	return Join(folder, path)
}
