package files

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// parameters lists what may be said of each kind of storage after the question mark: how to reach it, and nothing secret.
var parameters = map[string][]string{
	"file":   nil,
	"mem":    nil,
	"s3":     {"anonymous", "dualstack", "endpoint", "fips", "profile", "region", "request_checksum_calculation", "response_checksum_validation", "use_path_style"},
	"gs":     {"anonymous"},
	"azblob": {"cdn", "domain", "localemu", "protocol", "storage_account"},
}

// variables say where the credentials of each kind of storage come from.
var variables = map[string]string{
	"s3":     "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, and AWS_REGION",
	"gs":     "GOOGLE_APPLICATION_CREDENTIALS to the path of a key file, or log in with gcloud auth application-default login",
	"azblob": "AZURE_STORAGE_ACCOUNT, and AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or AZURE_STORAGE_CONNECTION_STRING, or log in with az login",
}

// Credentials says what to set in the environment for a kind of storage; "" when it needs nothing.
func Credentials(scheme string) string { return variables[scheme] }

// Schemes lists the kinds of storage that a URL can name.
func Schemes() []string { return slices.Sorted(maps.Keys(parameters)) }

// CheckURL refuses a URL of no known storage, and one that holds a user, a password or a parameter that is none of how to reach
// the bucket: it could be a secret, and URLs are in specs, logs and results. The error holds nothing secret.
func CheckURL(raw string) error {
	shown := withoutSecrets(raw)
	u, err := url.Parse(raw)
	if err != nil || !IsURL(raw) {
		return fmt.Errorf("%s is no URL that can be read; write scheme://bucket/key, with one of the schemes %s", shown, strings.Join(Schemes(), ", "))
	}
	allowed, known := parameters[u.Scheme]
	if !known {
		return fmt.Errorf("%s: storage of the kind %q is not known; use one of: %s", shown, u.Scheme, strings.Join(Schemes(), ", "))
	}
	if u.User != nil {
		return fmt.Errorf("%s: a URL may not hold a user or a password, since it is kept with the results%s", shown, whereFrom(u.Scheme))
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return fmt.Errorf("%s: its parameters cannot be read", shown)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(allowed, name) {
			return fmt.Errorf("%s: the parameter %q is not allowed in a URL%s%s", shown, shortened(name), orNone(allowed), whereFrom(u.Scheme))
		}
	}
	if endpoint := query.Get("endpoint"); endpoint != "" {
		if e, err := url.Parse(endpoint); err != nil || e.User != nil || e.RawQuery != "" || e.Host == "" {
			return fmt.Errorf("%s: endpoint must be a URL such as http://localhost:9000, without a user or parameters", shown)
		}
	}
	switch {
	case u.Fragment != "":
		return fmt.Errorf("%s: a URL of storage has no part after #", shown)
	case u.Scheme == "file" && u.Host != "" && u.Host != "localhost":
		return fmt.Errorf("%s: a file URL has three slashes: file:///folder/file", shown)
	case u.Scheme != "file" && u.Host == "":
		return fmt.Errorf("%s: it names no bucket; write %s://bucket/key", shown, u.Scheme)
	}
	return nil
}

func whereFrom(scheme string) string {
	if v := variables[scheme]; v != "" {
		return "; credentials come from the environment: set " + v
	}
	return ""
}

func orNone(allowed []string) string {
	if len(allowed) == 0 {
		return ": there are none for it"
	}
	return "; allowed are " + strings.Join(allowed, ", ")
}

// withoutSecrets shows a URL without what may be secret: a user, a password, parameters. A password may have any characters, so in
// doubt it shows less.
func withoutSecrets(raw string) string {
	text, parameters := raw, ""
	if at := strings.IndexAny(raw, "?#"); at >= 0 {
		text, parameters = raw[:at], raw[at:]
	}
	if head, rest, found := strings.Cut(text, "://"); found {
		authority, _, _ := strings.Cut(rest, "/")
		at := strings.LastIndexByte(rest, '@')
		switch user := strings.ContainsAny(authority, ":@"); {
		case user && at >= 0:
			text = head + "://***@" + rest[at+1:]
		case user && strings.Contains(parameters, "@"):
			text = head + "://***"
		}
	}
	if parameters != "" {
		text += "?..."
	}
	return shortened(text)
}

// Shown is a path or URL as messages show it, without what may be secret.
func Shown(pathOrURL string) string {
	if !IsURL(pathOrURL) {
		return pathOrURL
	}
	if CheckURL(pathOrURL) == nil {
		return pathOrURL
	}
	return withoutSecrets(pathOrURL)
}

// urlIn finds the URLs in a text.
var urlIn = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]+://[^\s,\]}"']+`)

// ShownIn is a text with its URLs as messages show them.
func ShownIn(text string) string { return urlIn.ReplaceAllStringFunc(text, Shown) }

// shortened keeps a message readable.
func shortened(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
