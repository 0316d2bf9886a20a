package yaql

// generating are the functions that make collections of other values.
func generating() []definition {
	return []definition{
		{"generate", FunctionKind, "initial: any?, predicate: lambda, producer: lambda, selector: lambda = null, decycle: bool = false", generate,
			"Gives the initial value, then what the producer makes of it, and so on while the predicate is true.", "generate(1, $ < 10, $ * 2) ⇒ [1,2,4,8]", 0},
		{"generateMany", FunctionKind, "initial: any?, producer: lambda, selector: lambda = null, decycle: bool = false, depthFirst: bool = false", generateMany,
			"Walks through a tree: the producer gives the children of a node.", "generateMany(1, switch($ < 3 => [$ * 2], true => [])) ⇒ [1,2,4]", 0},
		{"range", FunctionKind, "start: int, stop: int, step: int = 1", func(c *Context, a []any) (any, error) { return rangeOf(c, asIndex(a[0]), a[1], asIndex(a[2])) },
			"Gives the integers from start up to stop, which is not included.", "range(1, 7, 2) ⇒ [1,3,5]", 0},
		{"range", FunctionKind, "stop: int", func(c *Context, a []any) (any, error) { return rangeOf(c, int64(0), a[0], int64(1)) },
			"Gives the integers from 0 up to stop, which is not included.", "range(3) ⇒ [0,1,2]", 0},
		{"repeat", MethodKind, "value: any?, times: int = -1", func(c *Context, a []any) (any, error) {
			left := clampInt(a[1])
			if left > 0 {
				if _, err := machineInt(a[1]); err != nil {
					return nil, err
				}
			}
			return &Iterator{src: &repeater{a[0], left, c.run}, run: c.run}, nil
		}, "Gives the value a number of times, or without end if the number is negative.", "x.repeat(2) ⇒ [\"x\",\"x\"]", 0},
		{"sequence", FunctionKind, "start: int = 0, step: int = 1", func(c *Context, a []any) (any, error) {
			return countFrom(c, asIndex(a[0]), asIndex(a[1])), nil
		}, "Gives start, start + step, and so on without end.", "sequence(1, 2).take(3) ⇒ [1,3,5]", 0},
	}
}

// repeater yields a value as often as is left, without end if that is negative.
type repeater struct {
	value any
	left  int64
	run   *run
}

func (r *repeater) next() (any, bool, error) {
	if r.left == 0 {
		return nil, false, nil
	}
	if r.left > 0 {
		r.left--
	}
	return r.value, true, r.run.step()
}

// counter yields integers that are step apart.
type counter struct {
	at, step any
	run      *run
}

func (n *counter) next() (any, bool, error) {
	if err := n.run.step(); err != nil {
		return nil, false, err
	}
	x := n.at
	var err error
	n.at, err = n.run.arith('+', n.at, n.step)
	return x, err == nil, err
}

// countFrom yields start, start + step and so on.
func countFrom(c *Context, start, step any) *Iterator {
	return &Iterator{src: &counter{start, step, c.run}, run: c.run}
}

func rangeOf(c *Context, start, stop, step any) (any, error) {
	direction, _ := compareNumbers(step, int64(0))
	if direction == 0 {
		return nil, errorf(ValueError, "range() arg 3 must not be zero")
	}
	all := countFrom(c, start, step)
	return lazily(c, func() (any, bool, error) {
		x, ok, err := all.src.next()
		if err != nil || !ok {
			return nil, false, err
		}
		o, _ := c.run.compareNumbers(x, stop)
		return x, o*direction < 0, nil
	}), nil
}

// seenBefore enters x and reports whether it was there. Without a set nothing has been seen.
func (r *run) seenBefore(past *Set, x any) (bool, error) {
	if past == nil {
		return false, nil
	}
	n := past.Len()
	err := r.add(past, x)
	return past.Len() == n, err
}

func pastItems(decycle any) *Set {
	if decycle == true {
		return &Set{}
	}
	return nil
}

func generate(c *Context, a []any) (any, error) {
	predicate, producer := a[1].(*Lambda), a[2].(*Lambda)
	selector, _ := a[3].(*Lambda)
	past := pastItems(a[4])
	value, started := a[0], false
	return lazily(c, func() (any, bool, error) {
		if err := c.run.step(); err != nil {
			return nil, false, err
		}
		if started {
			var err error
			if value, err = producer.call1(value); err != nil {
				return nil, false, err
			}
		}
		started = true
		t, err := predicate.test1(value)
		if err != nil || !t {
			return nil, false, err
		}
		if seen, err := c.run.seenBefore(past, value); err != nil || seen {
			return nil, false, err
		}
		x, err := callItem(selector, value)
		return x, err == nil, err
	}), nil
}

func generateMany(c *Context, a []any) (any, error) {
	producer := a[1].(*Lambda)
	selector, _ := a[2].(*Lambda)
	past := pastItems(a[3])
	queue := []any{a[0]}
	var node any
	started := false
	return lazily(c, func() (any, bool, error) {
		if started {
			children, err := produced(c, producer, node)
			if err != nil {
				return nil, false, err
			}
			if a[4] == true {
				c.run.copies(len(queue) + len(children))
				queue = append(append(make([]any, 0, len(queue)+len(children)), children...), queue...)
			} else {
				queue = append(queue, children...)
			}
		}
		for len(queue) > 0 {
			if err := c.run.step(); err != nil {
				return nil, false, err
			}
			node = queue[0]
			queue = queue[1:]
			seen, err := c.run.seenBefore(past, node)
			if err != nil {
				return nil, false, err
			}
			if seen {
				continue
			}
			started = true
			x, err := callItem(selector, node)
			return x, err == nil, err
		}
		return nil, false, nil
	}), nil
}

// produced returns the children of a node. Strings are collections of characters here.
func produced(c *Context, producer *Lambda, node any) ([]any, error) {
	v, err := producer.call1(node)
	if err != nil {
		return nil, err
	}
	if s, ok := v.(string); ok {
		if err := c.run.spend(len(s)); err != nil {
			return nil, err
		}
		return charItems(s), nil
	}
	src, err := iterate(c, v)
	if err != nil {
		return nil, err
	}
	return drainSlowly(src)
}
