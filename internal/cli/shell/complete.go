package shell

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CompleteWords has all commands below one offer what the words of their usage lines stand
// for: SERVER, USER, ... Commands that offer something already are left alone, and so are
// those without any of the words.
func CompleteWords(cmd *cobra.Command, offers map[string]cobra.CompletionFunc) {
	complete(cmd, offers, false)
}

// CompleteRest has all commands below one that offer nothing offer files where their usage
// lines and the help of their options have such, and nothing elsewhere: a shell offers files
// everywhere unless told otherwise.
func CompleteRest(cmd *cobra.Command) {
	complete(cmd, nil, true)
	completeOptions(cmd)
}

func completeOptions(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		completeOptions(c)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { // its own: those of all commands come to it when it is run
		if _, has := cmd.GetFlagCompletionFunc(f.Name); !has && !namesFile.MatchString(f.Usage) {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions) // the option exists
		}
	})
}

// namesFile matches the help of options whose value is a file or directory of the one who types.
var namesFile = regexp.MustCompile(`\b(file|directory)\b`)

func complete(cmd *cobra.Command, offers map[string]cobra.CompletionFunc, all bool) {
	for _, c := range cmd.Commands() {
		complete(c, offers, all)
	}
	words, known := argumentWords(cmd.Use), all
	for _, w := range words {
		known = known || offers[w] != nil
	}
	if cmd.HasSubCommands() || cmd.ValidArgsFunction != nil || !known {
		return
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		for _, w := range wordsAt(words, len(args)) {
			if offer := offers[w]; offer != nil {
				return offer(cmd, args, typed)
			}
			if slices.Contains(fileWords, w) {
				return nil, cobra.ShellCompDirectiveDefault
			}
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// fileWords stand for files.
var fileWords = []string{"FILE", "PATH"}

// argumentWords are the arguments of a usage line, each as it is written there, up to its
// options. Alternatives are words of their own with a bar before them.
func argumentWords(use string) []string {
	var out []string
	for _, w := range strings.Fields(use)[1:] {
		w = strings.Trim(w, "[]")
		if strings.HasPrefix(w, "-") || w == "|" {
			break
		}
		name, many := strings.CutSuffix(w, "...")
		for i, alternative := range strings.Split(strings.TrimRight(name, "]"), "|") {
			if i > 0 {
				out = append(out, "|")
			}
			out = append(out, alternative)
		}
		if many {
			out = append(out, "...")
		}
	}
	return out
}

// wordsAt are the words that the argument at a place may be.
func wordsAt(words []string, place int) []string {
	var places [][]string
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "...":
			for len(places) <= place {
				places = append(places, places[len(places)-1])
			}
		case words[i] == "|" && i+1 < len(words):
			i++
			last := len(places) - 1
			places[last] = append(places[last], words[i])
		default:
			places = append(places, []string{words[i]})
		}
	}
	if place >= len(places) {
		return nil
	}
	return places[place]
}

// Offer are completions out of names, as far as they go on with what is typed and do not
// stand on the command line already.
func Offer(names, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, name := range names {
		if strings.HasPrefix(name, typed) && !slices.Contains(args, name) {
			out = append(out, name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
