package course

// Drift is what the machines told when they were asked whether what was deployed is there still. It is asked of tasks on nodes that would not run, and
// would in a first deployment.
type Drift struct {
	// Compared is how many of these are as they are wanted, or differ, which Differ tells of. Of those in Unknown it is not known. Uncompared is how
	// many have nothing by which they could be compared.
	Compared   int       `json:"compared"`
	Differ     []Differs `json:"differ"`
	Unknown    []Unknown `json:"unknown"`
	Uncompared int       `json:"uncompared"`
}

// Differs is a task of which something differs on the machine of a node: what, in a line and in more of them, of which More tells that there are further
// ones.
type Differs struct {
	Task       string   `json:"task"`
	Node       string   `json:"node"`
	Host       string   `json:"host"`
	Summary    string   `json:"summary"`
	Difference []string `json:"difference"`
	More       bool     `json:"more,omitempty"`
}

// Unknown is a task of which it is not known whether something differs, and Why.
type Unknown struct {
	Task string `json:"task"`
	Node string `json:"node"`
	Host string `json:"host"`
	Why  string `json:"why"`
}
