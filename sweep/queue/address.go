package queue

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/servegrid/servegrid/sweep/queue/wire"
)

// parseURL takes a queue's URL apart.
func parseURL(text string) (servers, namespace string, err error) {
	scheme, rest, ok := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "nats" && scheme != "tls" {
		return "", "", fmt.Errorf("queue %q: give nats://HOST:PORT/NAMESPACE, or tls://… for TLS", withoutSecrets(text))
	}
	hosts, path, _ := strings.Cut(rest, "/")
	namespace = strings.TrimSuffix(path, "/")
	if namespace == "" {
		namespace = DefaultNamespace
	}
	if strings.Contains(rest, "@") { // a password may hold a slash
		return "", "", fmt.Errorf("queue %s: a URL ends up in logs and process lists, so it may hold no user, password or token; give them in the environment: NATS_CREDS, NATS_NKEY, NATS_USER and NATS_PASSWORD, or NATS_TOKEN", withoutSecrets(text))
	}
	if strings.ContainsAny(rest, "?#") {
		return "", "", fmt.Errorf("queue %s: nothing may follow the namespace", withoutSecrets(text))
	}
	if err := wire.CheckToken("queue: namespace", namespace); err != nil {
		return "", "", err
	}
	var list []string
	for host := range strings.SplitSeq(hosts, ",") {
		if host == "" {
			return "", "", fmt.Errorf("queue %q: a host is missing; give nats://HOST:PORT/NAMESPACE", text)
		}
		if _, port, err := net.SplitHostPort(host); err == nil {
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return "", "", fmt.Errorf("queue %q: the port of %q is none; give a number from 1 to 65535", text, host)
			}
		}
		list = append(list, scheme+"://"+host)
	}
	return strings.Join(list, ","), namespace, nil
}

// withoutSecrets is a URL as it may be printed: nothing of what stands before an @, nor of a query or a fragment.
func withoutSecrets(url string) string {
	at, end := strings.LastIndexByte(url, '@'), strings.IndexAny(url, "?#")
	switch {
	case end >= 0 && end < at:
		return "…" // whether the @ belongs to a password or to a query cannot be told
	case end >= 0:
		url = url[:end]
	}
	if at < 0 {
		return url
	}
	scheme, _, ok := strings.Cut(url[:at], "://")
	if ok && (strings.EqualFold(scheme, "nats") || strings.EqualFold(scheme, "tls")) {
		return scheme + "://…@" + url[at+1:]
	}
	return "…@" + url[at+1:]
}

// credentials are the options that the environment asks for, and the variables that say who this is.
func credentials(getenv func(string) string) (options []nats.Option, given []string, err error) {
	var errs []error
	readable := func(name string) (string, bool) {
		path := getenv(name)
		if path == "" {
			return "", false
		}
		if f, err := os.Open(path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			return "", false
		} else {
			_ = f.Close() // it was opened to see whether it can be read
		}
		return path, true
	}
	if path, ok := readable("NATS_CREDS"); ok {
		options, given = append(options, nats.UserCredentials(path)), append(given, "NATS_CREDS")
	}
	if path, ok := readable("NATS_NKEY"); ok {
		option, err := nats.NkeyOptionFromSeed(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("NATS_NKEY: %s holds no nkey seed", path))
		} else {
			options, given = append(options, option), append(given, "NATS_NKEY")
		}
	}
	switch user, password := getenv("NATS_USER"), getenv("NATS_PASSWORD"); {
	case (user == "") != (password == ""):
		errs = append(errs, errors.New("NATS_USER and NATS_PASSWORD belong together; give both"))
	case user != "":
		options, given = append(options, nats.UserInfo(user, password)), append(given, "NATS_USER and NATS_PASSWORD")
	}
	if secret := getenv("NATS_TOKEN"); secret != "" {
		options, given = append(options, nats.Token(secret)), append(given, "NATS_TOKEN")
	}
	if path, ok := readable("NATS_CA"); ok {
		options = append(options, nats.RootCAs(path))
	}
	cert, hasCert := readable("NATS_CERT")
	key, hasKey := readable("NATS_KEY")
	switch {
	case hasCert && hasKey:
		options = append(options, nats.ClientCert(cert, key))
	case (getenv("NATS_CERT") == "") != (getenv("NATS_KEY") == ""):
		errs = append(errs, errors.New("NATS_CERT and NATS_KEY belong together; give both"))
	}
	return options, given, errors.Join(errs...)
}
