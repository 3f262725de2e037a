package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/simcore"
)

func newVersion(st *state) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program and of the simulator's behaviour",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(st.stdout, "servegrid %s, simulator %s, %s\n", buildVersion(), simcore.SemanticVersion, runtime.Version())
			return err
		},
	}
}

// buildVersion is the module version, or the commit the program was built from.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" {
		return v
	}
	return "(devel)"
}
