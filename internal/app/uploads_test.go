package app

import "testing"

// TestWhereUploadsAre: in the data directory where one controller has the store, where the operator says, and nowhere else.
func TestWhereUploadsAre(t *testing.T) {
	for _, c := range []struct {
		o      Options
		within bool
		want   string
	}{
		{Options{Data: "/data"}, false, "/data/uploads"},
		{Options{Data: "/data", Store: "postgres://db"}, false, ""},
		{Options{Data: "/data", Store: "postgres://db", Uploads: "/shared"}, false, "/shared"},
		{Options{Data: "/data", Uploads: "/other"}, false, "/other"},
		{Options{}, true, ""},
	} {
		if got, why := uploadsDir(c.o, c.within); got != c.want || (why == "") != (got != "") {
			t.Errorf("%+v: %q, %q", c.o, got, why)
		}
	}
}
