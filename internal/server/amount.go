package server

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Amount is what servers take of what their projects may have; as a limit, a negative number is none.
type Amount struct{ Instances, Cores, RAM int64 }

// amounts are the parts of an amount, under Nova's names.
var amounts = []struct {
	name, unit string
	of         func(Amount) int64
}{
	{"instances", "", func(a Amount) int64 { return a.Instances }},
	{"cores", "cores", func(a Amount) int64 { return a.Cores }},
	{"ram", "MiB", func(a Amount) int64 { return a.RAM }},
}

// amountOf is what n servers of a size take.
func amountOf(f Flavor, n int64) Amount { return Amount{n, n * f.VCPUs, n * f.RAM} }

func (a Amount) plus(b Amount) Amount {
	return Amount{a.Instances + b.Instances, a.Cores + b.Cores, a.RAM + b.RAM}
}

// Taken is what servers take together.
func Taken(servers iter.Seq[*Server]) (sum Amount) {
	for s := range servers {
		sum = sum.plus(s.Takes())
	}
	return sum
}

// unlimited reports whether there is no limit at all.
func (a Amount) unlimited() bool { return a.Instances < 0 && a.Cores < 0 && a.RAM < 0 }

// exceeded names the parts of which a limit has no room for more.
func (a Amount) exceeded(used, more Amount) (parts []int) {
	for i, part := range amounts {
		if limit := part.of(a); limit >= 0 && part.of(more) > 0 && part.of(used)+part.of(more) > limit {
			parts = append(parts, i)
		}
	}
	return parts
}

// Admit says how many servers of a size a limit has room for beside those that a project has: as many as there may be at most. Denied, with what is exceeded
// and what uses it, where that is less than is asked for at least.
func (a Amount) Admit(has iter.Seq[*Server], f Flavor, least, most int) (int, error) {
	if a.unlimited() {
		return most, nil
	}
	used := Taken(has)
	for n := most; n >= least; n-- {
		if len(a.exceeded(used, amountOf(f, int64(n)))) == 0 {
			return n, nil
		}
	}
	return 0, a.refusal(has, used, amountOf(f, int64(least)))
}

// Grow refuses that a server of those that a project has gets another size for which the limit has no room: Denied.
func (a Amount) Grow(has iter.Seq[*Server], s *Server, to Flavor) error {
	if a.unlimited() {
		return nil
	}
	now, then := s.Takes(), amountOf(to, 1)
	more := Amount{Cores: max(0, then.Cores-now.Cores), RAM: max(0, then.RAM-now.RAM)}
	used := Taken(has)
	parts := a.exceeded(used, more)
	if len(parts) == 0 {
		return nil
	}
	return a.refusal(has, used, more)
}

// refusal says in Nova's words which limits are exceeded, and as a hint what uses the first of them.
func (a Amount) refusal(has iter.Seq[*Server], used, more Amount) error {
	parts := a.exceeded(used, more)
	list := func(of func(i int) string) string {
		var out []string
		for _, i := range parts {
			out = append(out, of(i))
		}
		return strings.Join(out, ", ")
	}
	number := func(of Amount) func(i int) string {
		return func(i int) string { return strconv.FormatInt(amounts[i].of(of), 10) }
	}
	named := list(func(i int) string { return amounts[i].name })
	err := fault.New(fault.Denied, "Quota exceeded for %s: Requested %s, but already used %s of %s %s", named, list(number(more)), list(number(used)), list(number(a)), named).At("quota")
	return err.WithHint("%s", users(has, parts[0]))
}

// maxUsers is how many servers a refusal names.
const maxUsers = 5

// users says which servers use a part most.
func users(has iter.Seq[*Server], part int) string {
	of := func(s *Server) int64 { return amounts[part].of(s.Takes()) }
	all := slices.SortedStableFunc(has, func(a, b *Server) int { return cmp.Compare(of(b), of(a)) })
	if len(all) == 0 {
		return "nothing uses it: the limit itself is too small for what is asked for, and the operator's"
	}
	var out []string
	for _, s := range all[:min(len(all), maxUsers)] {
		text := fault.Clip(s.Name, 60)
		if unit := amounts[part].unit; unit != "" {
			text += fmt.Sprintf(" (%d %s)", of(s), unit)
		}
		out = append(out, text)
	}
	if more := len(all) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return "used by " + strings.Join(out, ", ") + "; delete some, or ask the operator for more"
}
