package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// scriptFile is the file that the command is read from, and inputFile that of its standard input. They hold what the parameters hold.
func (c *command) scriptFile() string {
	return filepath.Join(filepath.Dir(c.files), "command."+strconv.Itoa(c.try))
}

func (c *command) inputFile() string { return c.output + ".input" }

// tidy takes secrets from the files of a command that has ended: what it read goes, and of its output stays what is told.
func (c *command) tidy() {
	var all []error
	for _, name := range []string{c.scriptFile(), c.inputFile()} {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
	}
	if err := errors.Join(append(all, c.hideOutput())...); err != nil {
		c.run.log("files of the command stay on the node as they are: " + err.Error())
	}
}

// hideOutput puts what is told of the output in its place.
func (c *command) hideOutput() error {
	hidden := c.run.task.Hidden
	text, err := os.ReadFile(c.output)
	if err != nil {
		return err
	}
	whole := string(text)
	told := whole
	if len(whole) >= maxOutput {
		told = whole[:hidden.Cut(whole)] // what is left out may be the rest of a secret
	}
	if told = hidden.Text(told); told == whole {
		return nil
	}
	made := c.output + ".new"
	if err := os.WriteFile(made, []byte(told), 0o600); err != nil {
		return err
	}
	return os.Rename(made, c.output)
}
