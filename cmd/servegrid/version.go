package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/sweep/storage"
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

// versionText names the program, the simulator's behaviour, the compiler, and whether all parts are in the program.
func versionText() string {
	build := "default build, without s3, gs, azblob and an own queue server"
	if storage.Full {
		build = "full build"
	}
	return fmt.Sprintf("servegrid %s, simulator %s, %s, %s", buildVersion(), simcore.SemanticVersion, runtime.Version(), build)
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
