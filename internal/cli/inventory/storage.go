package inventory

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// storageCommands are the verbs of nodes that are about what disks are kept in.
func storageCommands(sh *shell.Shell) []*cobra.Command {
	return []*cobra.Command{nodeVolumes(sh), listStorage(sh), modifyStorage(sh), repairStorage(sh)}
}

// byNodes is a list of what nodes tell: a row for each of a node's things.
type byNodes struct {
	use, short, long, id string
	columns              []listing.Field
	// more registers options of its own. The function that it returns has them as parameters of the opcode.
	more func(cmd *cobra.Command) func(params map[string]any) error
}

func nodeVolumes(sh *shell.Shell) *cobra.Command {
	return byNodes{
		use: "volumes", short: "List the logical volumes on nodes", id: "OP_NODE_QUERYVOLS",
		long: "List the logical volumes in the volume groups of nodes, or of all, whoever has made\nthem, with the instances that they are for. One that lies on several devices is\nlisted for each, with all of its size.",
		columns: []listing.Field{
			{Name: "node", Title: "Node", Kind: "text"}, {Name: "phys", Title: "PhysDev", Kind: "text"}, {Name: "vg", Title: "VG", Kind: "text"},
			{Name: "name", Title: "Name", Kind: "text"}, {Name: "size", Title: "Size", Kind: "unit"}, {Name: "instance", Title: "Instance", Kind: "text"},
		},
	}.command(sh)
}

func listStorage(sh *shell.Shell) *cobra.Command {
	return byNodes{
		use: "list-storage", short: "List what the disks on nodes are kept in", id: "OP_NODE_QUERY_STORAGE",
		long: "List the storage units of nodes, or of all: directories of files, volume groups, or\nthe physical volumes that those lie on, with how large they are. Without\n--storage-type those that the cluster's first disk template uses which has any.",
		columns: []listing.Field{
			{Name: "node", Title: "Node", Kind: "text"}, {Name: "type", Title: "Type", Kind: "text"}, {Name: "name", Title: "Name", Kind: "text"},
			{Name: "size", Title: "Size", Kind: "unit"}, {Name: "used", Title: "Used", Kind: "unit"}, {Name: "free", Title: "Free", Kind: "unit"},
			{Name: "allocatable", Title: "Allocatable", Kind: "bool"},
		},
		more: func(cmd *cobra.Command) func(params map[string]any) error {
			kind := cmd.Flags().StringP("storage-type", "t", "", "type of the units: "+strings.Join(opcode.ReportedStorage, ", "))
			_ = cmd.RegisterFlagCompletionFunc("storage-type", cobra.FixedCompletions(opcode.ReportedStorage, cobra.ShellCompDirectiveNoFileComp)) // the option exists
			return func(params map[string]any) error {
				if *kind == "" {
					return nil
				}
				params["storage_type"] = *kind
				if !slices.Contains(opcode.ReportedStorage, *kind) {
					return shell.Usage("there are no storage units of type %q: one of %s", *kind, strings.Join(opcode.ReportedStorage, ", "))
				}
				return nil
			}
		},
	}.command(sh)
}

func (l byNodes) command(sh *shell.Shell) *cobra.Command {
	heeds := shell.Asking
	if sh.Classic() {
		heeds = append(slices.Clone(shell.ReadingByJob), "priority")
	}
	cmd := shell.Heeding(heeds, &cobra.Command{Use: l.use + " [NODE...]", Short: l.short, Long: l.long, Args: cobra.ArbitraryArgs, ValidArgsFunction: lists.CompleteNames(sh, "node", true)})
	var usual []string
	for _, c := range l.columns {
		usual = append(usual, c.Name)
	}
	var o lists.Options
	o.RegisterColumns(cmd, usual)
	more := func(map[string]any) error { return nil }
	if l.more != nil {
		more = l.more(cmd)
	}
	cmd.RunE = func(cmd *cobra.Command, nodes []string) error {
		fields, err := o.Columns(sh, usual)
		if err != nil {
			return err
		}
		params := map[string]any{"nodes": shell.NonNil(nodes), "output_fields": fields}
		if err := more(params); err != nil {
			return err
		}
		op, err := work.NewOp(sh, "node", l.id, params)
		if err != nil {
			return err
		}
		return l.show(cmd.Context(), sh, op, fields, &o)
	}
	return cmd
}

// show asks and shows. Whoever reads what drover says learns from its status that some node told nothing.
func (l byNodes) show(ctx context.Context, sh *shell.Shell, op *opcode.Opcode, fields []string, o *lists.Options) error {
	if sh.Classic() {
		return work.Run(ctx, sh, []work.Task{{Ops: []*opcode.Opcode{op}, Read: func(result json.RawMessage) (string, bool, error) {
			a, err := l.answer(result, fields)
			if err != nil {
				return "", false, err
			}
			text, err := lists.RowsText(sh, "storage", a, o)
			return text, true, err
		}}})
	}
	var result json.RawMessage
	said, err := work.Told(ctx, sh, op, &result)
	if err != nil {
		return err
	}
	a, err := l.answer(result, fields)
	if err == nil {
		err = lists.ShowRows(sh, "storage", a, o)
	}
	if err == nil && said {
		err = shell.ErrFailed
	}
	return err
}

// answer are rows of an opcode as those of a list.
func (l byNodes) answer(result json.RawMessage, fields []string) (*listing.Answer, error) {
	a := &listing.Answer{Fields: make([]listing.Field, len(fields))}
	for i, name := range fields {
		n := slices.IndexFunc(l.columns, func(c listing.Field) bool { return c.Name == name })
		if n < 0 { // it would have been refused
			return nil, fault.New(fault.Internal, "there is no field %s", name)
		}
		a.Fields[i] = l.columns[n]
	}
	var rows [][]json.RawMessage
	if err := json.Unmarshal(result, &rows); err != nil {
		return nil, fault.New(fault.Internal, "what the nodes told has an unexpected form: %w", err)
	}
	for _, row := range rows {
		if len(row) != len(fields) {
			return nil, fault.New(fault.Internal, "what the nodes told has a row of %d values for %d fields", len(row), len(fields))
		}
		cells := make([]listing.Cell, len(row))
		for i, value := range row {
			if text := strings.Trim(string(value), `"`); a.Fields[i].Kind == "unit" {
				value = json.RawMessage(text) // of volumes sizes are texts
			}
			cells[i].Value = value
		}
		a.Data = append(a.Data, cells)
	}
	return a, nil
}

// completeUnit completes a node, a type and nothing more: names of units are the node's.
func completeUnit(sh *shell.Shell, kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return lists.CompleteNames(sh, "node", false)(cmd, args, start)
		case 1:
			return []string{kind}, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// checkUnitKind refuses a type of which no storage units are, in the words of the classic tools.
func checkUnitKind(kind string) error {
	if !slices.Contains(opcode.ReportedStorage, kind) {
		return fault.New(fault.Invalid, "Unknown storage type: %s", kind).WithHint("one of: %s", strings.Join(opcode.ReportedStorage, ", "))
	}
	return nil
}

const unitArguments = 3 // node, type, name

func modifyStorage(sh *shell.Shell) *cobra.Command {
	cmd := shell.Heeding(shell.Making, &cobra.Command{
		Use: "modify-storage NODE TYPE NAME", Short: "Have a physical volume of a node give out room, or none", Args: shell.Exactly(unitArguments), ValidArgsFunction: completeUnit(sh, "lvm-pv"),
		Long: "Change a storage unit of a node: whether a physical volume (TYPE is lvm-pv) gives out room\nfor new disks. What lies on it stays. node list-storage shows which there are.",
	})
	allocatable := &shell.ParamText{Kind: shell.KindBool}
	cmd.Flags().Var(allocatable, "allocatable", "whether new disks may be made there (yes|no)")
	_ = cmd.RegisterFlagCompletionFunc("allocatable", cobra.FixedCompletions([]string{"yes", "no"}, cobra.ShellCompDirectiveNoFileComp)) // the option exists
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkUnitKind(args[1]); err != nil {
			return err
		}
		may, is := shell.BoolValue(allocatable.Text).(bool)
		switch given := cmd.Flags().Changed("allocatable"); {
		case !given && sh.Classic():
			sh.Notef("No changes to perform, exiting.\n")
			return nil
		case !given:
			return shell.Usage("nothing to change is given: --allocatable=yes or --allocatable=no")
		case !is:
			return shell.Usage("--allocatable is yes or no, got %q", allocatable.Text)
		}
		return unitJob(cmd.Context(), sh, "OP_NODE_MODIFY_STORAGE", args, map[string]any{"changes": map[string]any{"allocatable": may}})
	}
	return cmd
}

func repairStorage(sh *shell.Shell) *cobra.Command {
	cmd := shell.Heeding(shell.Making, &cobra.Command{
		Use: "repair-storage NODE TYPE NAME", Short: "Have a volume group do without devices that are gone", Args: shell.Exactly(unitArguments), ValidArgsFunction: completeUnit(sh, "lvm-vg"),
		Long: "Repair a storage unit of a node: a volume group (TYPE is lvm-vg) does without devices that\nare gone. Volumes that lay on those, if only in part, are lost: instances whose other copies\nare not up to date keep it from being done, unless --ignore-consistency is given.",
	})
	ignore := cmd.Flags().Bool("ignore-consistency", false, "go on although copies of disks on other nodes may be out of date")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkUnitKind(args[1]); err != nil {
			return err
		}
		if !sh.Classic() {
			if err := sh.Sure("node repair-storage", args[2]+" of "+args[0]); err != nil {
				return err
			}
		}
		return unitJob(cmd.Context(), sh, "OP_REPAIR_NODE_STORAGE", args, map[string]any{"ignore_consistency": *ignore})
	}
	return cmd
}

// unitJob has a job change a storage unit.
func unitJob(ctx context.Context, sh *shell.Shell, id string, args []string, params map[string]any) error {
	params["node_name"], params["storage_type"], params["name"] = args[0], args[1], args[2]
	op, err := work.NewOp(sh, "node", id, params)
	if err != nil {
		return err
	}
	return work.Run(ctx, sh, []work.Task{{Ops: []*opcode.Opcode{op}}})
}

// StorageCommand returns the noun "storage".
func StorageCommand(sh *shell.Shell) *cobra.Command {
	return sh.Group("storage", "Storage providers: scripts that make disks of the template ext", storageDiagnose(sh), storageInfo(sh))
}

// providerVerb makes a verb that shows storage providers. What is said of them alone is up to show.
func providerVerb(sh *shell.Shell, cmd *cobra.Command, nothing string, show func(ctx context.Context, found []classic.StorageProvider, args []string) error) *cobra.Command {
	heeds := shell.Asking
	if sh.Classic() {
		heeds = append(slices.Clone(shell.ReadingByJob), "priority")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		op, err := work.NewOp(sh, "storage", "OP_EXT_STORAGE_DIAGNOSE", map[string]any{"output_fields": classic.ProviderFields, "names": []string{}})
		if err != nil {
			return err
		}
		found := []classic.StorageProvider{}
		if err := work.Result(cmd.Context(), sh, op, &found); err != nil {
			return err
		}
		if len(found) == 0 && sh.Classic() {
			sh.Notef("%s\n", nothing)
			return shell.ErrFailed
		}
		return show(cmd.Context(), found, args)
	}
	return shell.Heeding(heeds, cmd)
}

func storageDiagnose(sh *shell.Shell) *cobra.Command {
	cmd := &cobra.Command{Use: "diagnose", Short: "Show what each node says of storage providers", Args: shell.Exactly(0)}
	return providerVerb(sh, cmd, "Can't get the list of ExtStorage providers", func(ctx context.Context, found []classic.StorageProvider, _ []string) error {
		var names map[string]string
		if !sh.Classic() {
			var err error
			if names, err = nodeNames(ctx, sh); err != nil {
				return err
			}
			if len(found) == 0 {
				sh.Notef("no node has storage providers\n")
			}
		}
		if err := sh.Show(found, func() error {
			for i := range found {
				if err := sh.Printf("%s\n", found[i].Diagnosis(names)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if !sh.Classic() && slices.ContainsFunc(found, func(p classic.StorageProvider) bool { return !p.Usable() }) {
			return shell.ErrFailed
		}
		return nil
	})
}

func storageInfo(sh *shell.Shell) *cobra.Command {
	cmd := &cobra.Command{Use: "info [NAME...]", Short: "Show where storage providers can be used, and their parameters", Args: cobra.ArbitraryArgs}
	return providerVerb(sh, cmd, "Can't get the ExtStorage providers list", func(_ context.Context, found []classic.StorageProvider, names []string) error {
		missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return slices.ContainsFunc(found, func(p classic.StorageProvider) bool { return p.Name == name })
		})
		if len(missing) > 0 && !sh.Classic() {
			return fault.New(fault.NotFound, "there is no storage provider %s", strings.Join(missing, ", ")).WithHint("drover storage diagnose shows which there are")
		}
		if len(names) > 0 {
			found = slices.DeleteFunc(found, func(p classic.StorageProvider) bool { return !slices.Contains(names, p.Name) })
		}
		return sh.Show(found, func() error {
			var text strings.Builder
			for i := range found {
				text.WriteString(found[i].Info() + "\n")
			}
			for _, name := range missing {
				text.WriteString(name + ": Not Found\n\n")
			}
			return sh.Printf("%s", text.String())
		})
	})
}
