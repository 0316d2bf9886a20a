package exec

import "sync"

// fewAtOnce is how many of many are asked at a time where all answers would be too much at once.
const fewAtOnce = 16

// beside does something for each of so many, at most some at a time, and returns when all is done.
func beside(count, most int, do func(i int)) {
	places := make(chan struct{}, max(most, 1))
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			do(i)
		})
	}
	all.Wait()
}
