package lock

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// MarshalJSON writes a want as it is stored: [name, mode].
func (w Want) MarshalJSON() ([]byte, error) {
	return json.Marshal([2]string{w.Name.String(), w.Mode.String()})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (w *Want) UnmarshalJSON(data []byte) error {
	var pair [2]string
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	level, item, _ := strings.Cut(pair[0], "/")
	at := slices.Index(levelNames[:], level)
	mode := map[string]Mode{Shared.String(): Shared, Exclusive.String(): Exclusive}[pair[1]]
	if at < 0 || item == "" || mode == 0 {
		return fault.New(fault.Invalid, "%q is no lock in a mode", pair)
	}
	*w = Want{Name{Level(at), item}, mode}
	return nil
}
