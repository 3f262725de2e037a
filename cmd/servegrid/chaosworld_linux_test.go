package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// service is a program that is started again whenever it ends, until it is over: when it was told to stop, or ended by itself
// and the function over says that this was all.
type service struct {
	t    *testing.T
	name string
	args func() []string
	over func(exitCode int, stderr string) bool
	// done ends when the service is over.
	done    context.Context
	nowDone context.CancelFunc

	mu      sync.Mutex
	cmd     *exec.Cmd
	stopped bool
	// starts counts all, kills those that a signal of ours ended.
	starts, kills int
	last          string // standard error of the last one
}

func startService(t *testing.T, name string, args func() []string, over func(int, string) bool) *service {
	s := &service{t: t, name: name, args: args, over: over}
	s.done, s.nowDone = context.WithCancel(context.Background())
	go s.run()
	t.Cleanup(func() { s.stop(syscall.SIGKILL) })
	return s
}

func (s *service) run() {
	defer s.nowDone()
	runtime.LockOSThread() // the death of the thread that started it is what kills a child
	for {
		var stderr bytes.Buffer
		args := s.args()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env, cmd.Stderr = programEnv(), &stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // nothing outlives the test
		s.mu.Lock()
		if s.stopped {
			s.mu.Unlock()
			return
		}
		err := cmd.Start()
		s.cmd = cmd
		s.starts++
		s.mu.Unlock()
		if err != nil {
			s.t.Errorf("%s: %v", s.name, err)
			return
		}
		_ = cmd.Wait()
		s.mu.Lock()
		killed := s.cmd == nil
		s.cmd, s.last = nil, stderr.String()
		stopped := s.stopped
		s.mu.Unlock()
		if stopped || !killed && s.over(cmd.ProcessState.ExitCode(), stderr.String()) {
			return
		}
	}
}

// signal sends a signal that ends the program. It returns false when none was running.
func (s *service) signal(signal os.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || s.cmd.Process.Signal(signal) != nil {
		return false
	}
	s.cmd = nil
	s.kills++
	return true
}

// stop ends the program for good.
func (s *service) stop(signal os.Signal) {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.signal(signal)
	<-s.done.Done()
}

// ended is how often the program ended without a signal of ours.
func (s *service) ended() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.starts - s.kills
	if s.cmd != nil {
		n--
	}
	return n
}

// proxy is the network between two programs. It can stop passing bytes without closing anything, and cut what is open.
type proxy struct {
	listener net.Listener
	target   string
	all      sync.WaitGroup

	mu      sync.Mutex
	open    []net.Conn
	passing context.Context // ended while bytes pass
	pass    func()
	down    bool // new connections are refused
	ended   bool
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: target}
	p.partition()
	p.heal()
	p.all.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.heal()
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
		p.cut()
		p.all.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", p.target)
		p.mu.Lock()
		if err != nil || p.down || p.ended {
			p.mu.Unlock()
			_ = from.Close()
			if err == nil {
				_ = to.Close()
			}
			continue
		}
		p.open = append(p.open, from, to)
		p.mu.Unlock()
		p.all.Go(func() { p.copy(from, to) })
		p.all.Go(func() { p.copy(to, from) })
	}
}

// copy copies bytes one way, while they pass.
func (p *proxy) copy(from, to net.Conn) {
	defer p.forget(from, to)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		passing := p.passing
		p.mu.Unlock()
		<-passing.Done()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// forget closes both ends.
func (p *proxy) forget(ends ...net.Conn) {
	for _, c := range ends {
		_ = c.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = slices.DeleteFunc(p.open, func(c net.Conn) bool { return slices.Contains(ends, c) })
}

// partition stops the bytes until heal.
func (p *proxy) partition() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passing, p.pass = context.WithCancel(context.Background())
}

// heal lets bytes pass, also those that waited.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass()
	p.down = false
}

// cut closes every connection. Refuse keeps new ones away until heal.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close()
	}
}

func (p *proxy) refuse() {
	p.mu.Lock()
	p.down = true
	p.mu.Unlock()
	p.cut()
}

// fillDisk takes all the room of a file system until the function that it returns is called.
func fillDisk(dir string) (empty func(), err error) {
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	block := make([]byte, 1<<20)
	for len(block) > 0 {
		n, err := f.Write(block)
		if n == 0 && err != nil {
			block = block[:len(block)/2]
			continue
		}
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			return nil, errors.Join(err, f.Close())
		}
	}
	return func() { _ = os.Remove(path) }, f.Close()
}

// freePort is a port that nobody uses at the moment.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// lines counts the lines of a file; 0 when there is none.
func lines(path string) int {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	n, buf := 0, make([]byte, 64<<10)
	for {
		got, err := f.Read(buf)
		n += bytes.Count(buf[:got], []byte{'\n'})
		if errors.Is(err, io.EOF) || err != nil {
			return n
		}
	}
}

// rest waits, unless the context ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// tail is the end of a text.
func tail(text string) string {
	if len(text) > 2000 {
		return "…" + text[len(text)-2000:]
	}
	return text
}
