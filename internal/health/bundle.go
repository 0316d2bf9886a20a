package health

// Bundle is what the controllers of a cluster tell of themselves for those who look for what went wrong. No secret is in it.
type Bundle struct {
	Files []File `json:"files"`
	// Silent are the controllers that did not answer, each with why.
	Silent []string `json:"silent"`
}

// File is a file of a bundle, by its path.
type File struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}
