package groupcommit

import "github.com/drover-project/drover/internal/store"

// Place turns an id into text whose order by bytes is that of
// store.CompareIDs: a number gets its count of digits in front, as one control
// character, which no id holds.
func Place(id string) string {
	if store.IsNumber(id) {
		return string(rune(len(id))) + id
	}
	return id
}

// PlaceID is the id that place was made of.
func PlaceID(place string) string {
	if place != "" && place[0] < ' ' {
		return place[1:]
	}
	return place
}
