package queue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// AwayError says that no server answers, or none that can serve yet. A moment later one may.
type AwayError struct{ err error }

// Error says what is missing and what to do.
func (e *AwayError) Error() string { return e.err.Error() }

// Unwrap returns the error itself.
func (e *AwayError) Unwrap() error { return e.err }

// unreachable reports whether a server may be there a moment later.
func unreachable(err error) bool {
	if dns := new(net.DNSError); errors.As(err, &dns) {
		return dns.IsTemporary || dns.IsTimeout || dns.IsNotFound
	}
	op := new(net.OpError)
	// A load balancer whose servers are away closes what it accepted.
	return errors.Is(err, nats.ErrNoServers) || errors.Is(err, nats.ErrTimeout) || errors.As(err, &op) || errors.Is(err, io.EOF)
}

// connectError says what is wrong and what to do.
func (c *Connection) connectError(err error) error {
	text := err.Error()
	hint := ""
	dns := new(net.DNSError)
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("queue %s: the name %q cannot be resolved; check it, or the name server of this machine", c.url, dns.Name)
	case errors.Is(err, nats.ErrNoServers), strings.Contains(text, "connection refused"):
		hint = "no server answers there; start one with JetStream (nats-server -js), or check host and port"
	case refusesCredentials(err), strings.Contains(strings.ToLower(text), "authorization violation"):
		hint = "the server refuses the credentials of " + strings.Join(c.given, ", ")
		if len(c.given) == 0 {
			hint = "the server wants credentials; give them in the environment: NATS_CREDS, NATS_NKEY, NATS_USER and NATS_PASSWORD, or NATS_TOKEN"
		}
	case slices.Contains(c.given, "NATS_CREDS") && strings.Contains(text, "signing nonce"):
		hint = "the file of NATS_CREDS does not hold the seed of a user"
	case errors.Is(err, nats.ErrSecureConnWanted) && strings.HasPrefix(strings.ToLower(c.url), "tls:"):
		hint = "the server has no TLS; use nats:// in place of tls://"
	case errors.Is(err, nats.ErrSecureConnWanted):
		hint = "NATS_CA and NATS_CERT ask for TLS, and the server has none; unset them, or give the server a certificate"
	case errors.Is(err, nats.ErrSecureConnRequired):
		hint = "the server wants TLS; use tls:// in place of nats://"
	case strings.Contains(text, "tls: first record does not look like a TLS handshake"):
		hint = "what answers there does not speak TLS; use nats:// in place of tls://"
	case strings.Contains(text, "x509"), strings.Contains(text, "certificate"), strings.Contains(text, "tls error"):
		hint = "TLS failed; NATS_CA names the file of the authority that signed the server's certificate, NATS_CERT and NATS_KEY this client's own"
	case errors.Is(err, nats.ErrTimeout), strings.Contains(text, "i/o timeout"):
		hint = "nothing answers in time; check host, port and firewalls"
	default:
		return fmt.Errorf("queue %s: %w", c.url, err)
	}
	return fmt.Errorf("queue %s: %s (%w)", c.url, hint, err)
}

// failsTLS reports whether client and server do not agree about TLS.
func failsTLS(err error) bool {
	text := err.Error()
	return errors.Is(err, nats.ErrSecureConnWanted) || errors.Is(err, nats.ErrSecureConnRequired) ||
		strings.Contains(text, "x509") || strings.Contains(text, "certificate") || strings.Contains(text, "tls: ") || strings.Contains(text, "tls error")
}

// refusesCredentials reports whether a server does not let a client in that it knew before, or not any more.
func refusesCredentials(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) ||
		errors.Is(err, nats.ErrAccountAuthExpired)
}

// RefusedError is an action that the server does not allow this user.
type RefusedError struct {
	// Action is publish or subscribe, Subject to what.
	Action, Subject string
}

// Error says which permission is missing.
func (e *RefusedError) Error() string {
	if stream, ok := strings.CutPrefix(e.Subject, "$JS.API.STREAM.CREATE."); ok {
		return fmt.Sprintf("queue: the stream %s is not there, and this user may not make it; let a user who may make streams use the namespace once, as docs/queue.md says, such as with: servegrid worker --idle-exit 1s", stream)
	}
	if inbox, ok := strings.CutPrefix(e.Subject, "_INBOX_servegrid-"); ok {
		namespace, _, _ := strings.Cut(inbox, ".")
		return fmt.Sprintf("queue: this user may not use namespace %s: he may not %s to %s; docs/queue.md lists the permissions that a namespace needs", namespace, e.Action, e.Subject)
	}
	return fmt.Sprintf("queue: this user may not %s to %s; docs/queue.md lists the permissions that a namespace needs", e.Action, e.Subject)
}

var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]*)"`)

func permissionError(err error) error {
	m := violation.FindStringSubmatch(err.Error())
	if m == nil {
		return fmt.Errorf("queue: %w", err)
	}
	action := "publish"
	if strings.EqualFold(m[1], "subscription") {
		action = "subscribe"
	}
	return &RefusedError{action, m[2]}
}

// serverError makes an error of the server one that says what to do.
func serverError(what string, err error) error {
	refused, api := new(RefusedError), new(jetstream.APIError)
	hint := ""
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrJetStreamNotEnabled):
		hint = "the server has no JetStream; start it with -js, or give it a jetstream section"
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		hint = "this account has no JetStream; enable it for the account"
	case errors.As(err, &api) && isAccountLimit(api):
		hint = "a limit of the account or the server is reached; a namespace reserves 1.6 GiB of storage unless its streams were made smaller: raise max_file_store in the server's jetstream section, or the limits of the account"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		hint = "the server does not answer in time"
	}
	told := fmt.Errorf("queue: %s: %w", what, err)
	if hint != "" {
		told = fmt.Errorf("queue: %s: %s (%w)", what, hint, err)
	}
	if passing(err) {
		return &AwayError{told}
	}
	return told
}

// passing reports whether an error may be gone a moment later: the server does not answer, or has just begun.
func passing(err error) bool {
	api := new(jetstream.APIError)
	if errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) || errors.As(err, &api) && isAccountLimit(api) {
		return false // until somebody changes the server's configuration
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrReconnectBufExceeded) || errors.As(err, &api) && api.Code == 503
}

// isAccountLimit reports whether an error is about storage, streams or consumers that an account or server has no more of.
func isAccountLimit(err *jetstream.APIError) bool {
	switch err.ErrorCode {
	case 10002, 10023, 10026, 10027, 10028, 10047, 10052: // resources, memory, consumers, streams, storage
		return true
	}
	return false
}

// errTooLarge says that a server does not take messages of this size.
var errTooLarge = errors.New("queue: the message is too large")

// errTwice says that two sweeps have one name.
var errTwice = errors.New("another sweep with the name of this folder takes its points from the queue at this moment: it runs elsewhere in the same folder, or the folder was copied; end it, or remove the file " + TokenFile + " from this one")
