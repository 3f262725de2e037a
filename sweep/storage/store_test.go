package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// buckets counts those in memory, which stay for the whole process.
var buckets atomic.Int64

// testStores are stores that every build has.
func testStores(t *testing.T) map[string]string {
	return map[string]string{
		"file": "file://" + filepath.ToSlash(t.TempDir()) + "/runs/x",
		"mem":  fmt.Sprintf("mem://bucket-%d/runs/x", buckets.Add(1)),
	}
}

func TestStore(t *testing.T) {
	for scheme, url := range testStores(t) {
		t.Run(scheme, func(t *testing.T) { checkStore(t, url) })
	}
}

// checkStore is what every kind of storage must do, in an empty folder.
func checkStore(t *testing.T, url string) {
	ctx := t.Context()
	s, err := Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if found, err := s.List(ctx, "", false); err != nil || len(found) != 0 {
		t.Fatalf("List = %v, %v", found, err)
	}
	if _, err := s.Get(ctx, "none", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get = %v", err)
	}
	if _, err := s.Stat(ctx, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat = %v", err)
	}
	if err := s.Remove(ctx, "none"); err != nil {
		t.Errorf("Remove = %v", err)
	}
	large := bytes.Repeat([]byte("large "), 1_000_000) // more than one part
	source := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(source, large, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		s.Put(ctx, "b", []byte("old")), s.Put(ctx, "b", []byte("text")), s.Put(ctx, "journal/2", nil), s.Put(ctx, "journal/1", []byte("1")),
		s.PutFile(ctx, "large", source),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Get(ctx, "b", 10); err != nil || string(got) != "text" {
		t.Errorf("Get = %q, %v", got, err)
	}
	if got, err := s.Get(ctx, "journal/2", 10); err != nil || len(got) != 0 {
		t.Errorf("Get = %q, %v", got, err)
	}
	for _, tc := range []struct {
		folder  string
		shallow bool
		want    string
	}{{"", false, "b journal/1 journal/2 large"}, {"", true, "b journal/ large"}, {"journal", true, "journal/1 journal/2"}, {"jour", false, ""}} {
		found, err := s.List(ctx, tc.folder, tc.shallow)
		var keys []string
		for _, o := range found {
			if o.Folder {
				o.Key += "/"
			}
			keys = append(keys, o.Key)
		}
		if got := strings.Join(keys, " "); err != nil || got != tc.want {
			t.Errorf("List(%q, %v) = %s, %v, want %s", tc.folder, tc.shallow, got, err, tc.want)
		}
	}
	copied := filepath.Join(t.TempDir(), "deep", "copy")
	if err := s.GetFile(ctx, "large", copied, 1<<30); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(copied); err != nil || !bytes.Equal(got, large) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	checkSystem(t, url, large)
	if err := s.Remove(ctx, "journal/1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(ctx, "journal/1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat = %v", err)
	}
}

// checkSystem reads what checkStore wrote.
func checkSystem(t *testing.T, url string, large []byte) {
	ctx := t.Context()
	s := &System{Cache: t.TempDir()}
	defer s.Close()
	base, parameters, _ := strings.Cut(url, "?")
	at := func(key string) string {
		if parameters != "" {
			return base + key + "?" + parameters
		}
		return base + key
	}
	for _, key := range []string{"", "/journal", "/journal/"} {
		if info, err := s.Stat(ctx, at(key)); err != nil || !info.Folder {
			t.Errorf("Stat(%q) = %+v, %v", key, info, err)
		}
	}
	if info, err := s.Stat(ctx, at("/large")); err != nil || info.Folder || info.Size != int64(len(large)) {
		t.Errorf("Stat = %+v, %v", info, err)
	}
	if _, err := s.Stat(ctx, at("/none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat = %v", err)
	}
	if entries, err := s.List(ctx, at("")); err != nil || len(entries) != 3 || entries[1].Name != "journal" || !entries[1].Folder {
		t.Errorf("List = %v, %v", entries, err)
	}
	r, err := s.Open(ctx, at("/large"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	head := make([]byte, 6)
	if _, err := r.Read(head); err != nil || string(head) != "large " {
		t.Errorf("Read = %q, %v", head, err)
	}
	for range 2 {
		path, err := s.Local(ctx, at("/large"))
		if got, readErr := os.ReadFile(path); err != nil || readErr != nil || !bytes.Equal(got, large) {
			t.Errorf("Local = %s, %v, %v", path, err, readErr)
		}
		folder, err := s.Local(ctx, at(""))
		if got, readErr := os.ReadFile(filepath.Join(folder, "journal", "1")); err != nil || readErr != nil || string(got) != "1" {
			t.Errorf("Local = %s, %q, %v, %v", folder, got, err, readErr)
		}
		damage := os.WriteFile(path, []byte("damaged"), 0o600)
		if damage != nil {
			t.Fatal(damage)
		}
	}
}

func TestKeysCannotLeaveTheFolder(t *testing.T) {
	s, _ := newFaulty(t)
	if err := s.Pull(t.Context(), []Object{{Key: "../../evil"}}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "leads out") {
		t.Errorf("Pull = %v", err)
	}
	if got := s.at.Join("../../../evil").Key; got != "evil" {
		t.Errorf("key %q", got)
	}
}

func TestCloudNeedsTheFullBuild(t *testing.T) {
	if Full {
		t.Skip("this is the full build")
	}
	_, err := Open(t.Context(), "s3://bucket/x")
	if err == nil || !strings.Contains(err.Error(), InstallFull) {
		t.Errorf("Open = %v", err)
	}
}

// A bucket that cannot be opened is named by what was to be read in it.
func TestErrorsOfOpeningNameTheWhole(t *testing.T) {
	t.Setenv("AWS_PROFILE", "none") // where the build has S3
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	var s System
	if _, err := s.Stat(t.Context(), "s3://bucket/runs/x"); err == nil || !strings.HasPrefix(err.Error(), "s3://bucket/runs/x cannot be opened: ") {
		t.Errorf("err = %v", err)
	}
}

func TestRoots(t *testing.T) {
	dir := t.TempDir()
	inside, outside := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for _, folder := range []string{inside, outside} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "f"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(outside, "f"), filepath.Join(inside, "link")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(outside, filepath.Join(inside, "folder")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(filepath.Join(outside, "new"), filepath.Join(inside, "dangling")); err != nil {
		t.Skip(err)
	}
	roots, err := NewRoots([]string{inside, "s3://bucket/runs", "file://" + filepath.ToSlash(inside)})
	if err != nil {
		t.Fatal(err)
	}
	s := &System{Roots: roots}
	for name, allowed := range map[string]bool{
		filepath.Join(inside, "f"): true, filepath.Join(inside, "new", "deep"): true, "-": true, "s3://bucket/runs/x": true,
		"file://" + filepath.ToSlash(inside) + "/f": true,
		filepath.Join(outside, "f"):                 false, inside + "/../out/f": false, filepath.Join(inside, "link"): false,
		filepath.Join(inside, "folder", "f"): false, filepath.Join(inside, "folder", "new"): false, filepath.Join(inside, "dangling"): false,
		"s3://bucket/other": false, "s3://other/runs/x": false, "s3://bucket/runs/../other": false, "file:///etc/passwd": false,
		"file://" + filepath.ToSlash(inside) + "/link": false, "mem://bucket/runs": false,
	} {
		if err := roots.Check(name); (err == nil) != allowed {
			t.Errorf("Check(%s) = %v", name, err)
		}
		if !allowed {
			if f, err := s.Open(t.Context(), name); err == nil {
				f.Close()
				t.Errorf("%s was opened", name)
			}
		}
	}
	f, err := s.Open(t.Context(), filepath.Join(inside, "f"))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := NewRoots([]string{"s3://u:p@b"}); err == nil {
		t.Error("a URL with a password was allowed")
	}
}
