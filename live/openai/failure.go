package openai

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"syscall"

	"github.com/servegrid/servegrid/live"
	"github.com/servegrid/servegrid/simcore/files"
)

// timeout is why a request was given up.
type timeout struct{ what string }

func (t *timeout) Error() string { return t.what }

// failure says why a request failed before its answer was complete. ctx is that of the request.
func failure(ctx context.Context, err error) *live.Error {
	var (
		late   *timeout
		dial   *net.OpError
		status *textproto.ProtocolError
	)
	of := func(kind live.ErrorKind, text string) *live.Error { return &live.Error{Kind: kind, Message: text} }
	switch {
	case errors.As(context.Cause(ctx), &late):
		return of(live.ErrTimeout, late.what)
	case ctx.Err() != nil:
		return of(live.ErrDropped, "the request was cancelled")
	case errors.Is(err, ErrEventTooLarge), errors.Is(err, errAnswerTooLarge):
		return of(live.ErrTooLarge, err.Error())
	case isTLS(err):
		return of(live.ErrTLS, err.Error())
	case errors.As(err, &dial) && dial.Op == "dial":
		return of(live.ErrConnect, err.Error()+connectHint(err))
	case errors.As(err, &status), isMalformed(err):
		return of(live.ErrMalformed, err.Error())
	case isEOF(err):
		return of(live.ErrDropped, "the connection ended before the answer was complete")
	}
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		return of(live.ErrTimeout, err.Error())
	}
	return of(live.ErrDropped, err.Error())
}

// isMalformed reports whether what came is no HTTP; net/http has no types for it. It says that a connection is broken of one that
// failed, too, which then says so itself.
func isMalformed(err error) bool {
	text := err.Error()
	if strings.Contains(text, "malformed") || strings.Contains(text, "chunk length") {
		return true
	}
	var network *net.OpError
	failed := errors.As(err, &network) || isEOF(err)
	return strings.Contains(text, "transport connection broken") && !failed
}

// connectHint says what to do when this machine is the reason.
func connectHint(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "; raise the limit of open files (ulimit -n) or send less at a time"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "; all ports of this machine to the server are in use: send less at a time, or give the server several addresses"
	}
	return ""
}

// isTLS reports whether two sides did not agree on a secure connection.
func isTLS(err error) bool {
	var (
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	return errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") // net/http has no type for it
}

// maxRefusal bounds what is read of an answer that is none, in bytes.
const maxRefusal = 64 << 10

// refused says why a server did not answer.
func refused(r *http.Response) *live.Error {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxRefusal)) // what came of it is told
	e := &live.Error{Status: r.StatusCode, Message: fmt.Sprintf("%s: %s", r.Status, ErrorMessage(body))}
	switch s := r.StatusCode; {
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		e.Kind = live.ErrUnauthorized
	case s == http.StatusTooManyRequests || s == http.StatusServiceUnavailable:
		e.Kind = live.ErrOverloaded
	case s >= 500:
		e.Kind = live.ErrServerStatus
	case s >= 300 && s < 400:
		e.Kind = live.ErrClientStatus
		e.Message = fmt.Sprintf("%s to %s; give that URL", r.Status, files.Shown(r.Header.Get("Location")))
	default:
		e.Kind = live.ErrClientStatus
	}
	return e
}
