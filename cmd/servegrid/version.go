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
			_, err := fmt.Fprintln(st.stdout, versionText())
			return err
		},
	}
}

// versionText names the program, the simulator's behaviour and the compiler.
func versionText() string {
	return fmt.Sprintf("servegrid %s, simulator %s, %s", buildVersion(), simcore.SemanticVersion, runtime.Version())
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
