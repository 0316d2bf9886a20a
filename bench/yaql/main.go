// Command yaql measures the YAQL engine beside the Python reference, two other Go engines and a hand-written
// loop, all in one run on one machine, and prints what they cost and how the costs relate.
//
// It is a module of its own, so that the engines it compares with are no dependencies of the project.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	peer := flag.String("peer", peerDirectory(), "directory with yaql_bench.py and yaql_bench_cases.json")
	python := flag.String("python", "/usr/bin/python3", "Python with the reference (python3-yaql)")
	budget := flag.Duration("time", 500*time.Millisecond, "how long each measurement takes")
	only := flag.String("only", "", "names of the reference's cases to measure, with commas between them; all unless given")
	skip := flag.Bool("skip-reference", false, "measure the Go engines only")
	flag.Parse()
	met := true
	if !*skip {
		ok, err := compareWithReference(os.Stdout, reference{python: *python, directory: *peer, only: *only}, *budget)
		exitOn(err)
		met = ok
	}
	ok, err := comparePredicate(os.Stdout, *budget)
	exitOn(err)
	met = met && ok
	ok, err = measureCompile(os.Stdout, *budget)
	exitOn(err)
	if !ok || !met {
		fmt.Println("some targets were missed")
		os.Exit(1)
	}
	fmt.Println("all targets were met")
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// peerDirectory is $DROVER_PEER, or ../shared/peer beside the repository.
func peerDirectory() string {
	if dir := os.Getenv("DROVER_PEER"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "..", "shared", "peer")
}
