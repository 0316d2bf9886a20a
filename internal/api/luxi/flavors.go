package luxi

import (
	"context"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/flavor"
)

// flavorMethods are the requests of operators about the sizes of servers.
var flavorMethods = []method{
	{"QueryFlavors", 0, 0, asks, queryFlavors},
	{"AddFlavor", 2, 3, changes, aboutFlavors(1, addFlavor)},       // the flavor, whether only to tell what it would do, [reason trail]
	{"ModifyFlavor", 3, 4, changes, aboutFlavors(2, modifyFlavor)}, // name or id, what changes, the same
	{"RemoveFlavor", 2, 3, changes, aboutFlavors(1, removeFlavor)}, // name or id, the same
}

func errNoFlavors() error {
	return fault.New(fault.NotFound, "this controller keeps no servers, and so no flavors")
}

func queryFlavors(_ context.Context, d *Deps, _ *arguments) (any, error) {
	if d.Flavors == nil {
		return nil, errNoFlavors()
	}
	return append([]flavor.Flavor{}, d.Flavors.All()...), nil
}

// aboutFlavors is a method that changes flavors, and whose argument at dry says whether it is only to tell what it would do. It answers with
// the flavor as it is then, or was when it is gone.
func aboutFlavors(dry int, do func(ctx context.Context, all *flavor.Service, a *arguments, ask flavor.Ask) (flavor.Flavor, error)) func(context.Context, *Deps, *arguments) (any, error) {
	return func(ctx context.Context, d *Deps, a *arguments) (any, error) {
		if d.Flavors == nil {
			return nil, errNoFlavors()
		}
		return do(ctx, d.Flavors, a, flavor.Ask{Dry: a.boolean(dry), By: a.as(dry + 1)})
	}
}

func addFlavor(ctx context.Context, all *flavor.Service, a *arguments, ask flavor.Ask) (flavor.Flavor, error) {
	var f flavor.Flavor
	a.object(0, &f)
	if err := a.bad(); err != nil {
		return f, err
	}
	return all.Add(ctx, f, ask)
}

func modifyFlavor(ctx context.Context, all *flavor.Service, a *arguments, ask flavor.Ask) (flavor.Flavor, error) {
	key, edit := a.str(0), flavor.Edit{}
	a.object(1, &edit)
	if err := a.bad(); err != nil {
		return flavor.Flavor{}, err
	}
	f, err := called(all, key)
	if err != nil {
		return f, err
	}
	return all.Change(ctx, f.ID, edit, ask)
}

func removeFlavor(ctx context.Context, all *flavor.Service, a *arguments, ask flavor.Ask) (flavor.Flavor, error) {
	key := a.str(0)
	if err := a.bad(); err != nil {
		return flavor.Flavor{}, err
	}
	f, err := called(all, key)
	if err != nil {
		return f, err
	}
	return all.Remove(ctx, f.ID, ask)
}

func called(all *flavor.Service, key string) (flavor.Flavor, error) {
	f, err := all.Called(key)
	if err != nil {
		return f, fault.New(fault.NotFound, "there is no flavor %q", fault.Clip(key, 100)).WithHint("drover manage flavor list")
	}
	return f, nil
}
