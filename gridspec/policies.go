package gridspec

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/servegrid/servegrid/simcore/files"
	"github.com/servegrid/servegrid/simcore/problem"
	"github.com/servegrid/servegrid/simcore/router"
)

// policyFile is the content of a router's policy file, or what is wrong with it.
type policyFile struct {
	classes  *router.Classes
	problems problem.List
}

// readPolicies reads the policy file of a router, once for all points.
func (e *expander) readPolicies(c *router.Config) problem.List {
	c.Classes = nil
	if c.RouterPolicyConfig == "" {
		return nil
	}
	file, known := e.policies[c.RouterPolicyConfig]
	if !known {
		file = readPolicyFile(c.RouterPolicyConfig)
		e.policies[c.RouterPolicyConfig] = file
	}
	c.Classes = file.classes
	return file.problems
}

func readPolicyFile(path string) policyFile {
	const key = "router.router_policy_config"
	var f policyFile
	data, err := readBounded(path)
	if err != nil {
		f.problems.Add(key, path, "the file cannot be read: %v", files.Cause(err))
		return f
	}
	f.classes, err = router.ParseClasses(data)
	var wrong problem.List
	switch {
	case errors.As(err, &wrong):
		for _, p := range wrong {
			f.problems.Add(key, path, "%v", p.Error())
		}
	case err != nil:
		f.problems.Add(key, path, "%v", err)
	}
	return f
}

// maxPolicyBytes bounds a policy file.
const maxPolicyBytes = 16 << 20

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPolicyBytes+1))
	if err == nil && len(data) > maxPolicyBytes {
		err = fmt.Errorf("it has more than %d MiB", maxPolicyBytes>>20)
	}
	return data, err
}
