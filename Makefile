# Drover's tasks. `make` alone lists them.

# Finds a Go that is new enough, or fetches it.
GO ?= $(CURDIR)/.ci/go

BIN    := bin
TOOLS  := .cache/bin
GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)

# Debian packages that the tests drive Drover with, or compare it to.
TEST_PACKAGES := python3-ganeti-rapi python3-yaql python3-novaclient python3-openstackclient postgresql rabbitmq-server nginx-light haproxy prometheus qemu-system-x86 qemu-utils iproute2 patch lvm2 ovmf swtpm zstd chromium-headless-shell
# Ganeti's own tools and the Python libraries that they import, which are unpacked and not installed.
STOCK_PACKAGES := ganeti-3.0 python3-pyparsing python3-openssl python3-pycurl python3-pyinotify python3-psutil \
	python3-bitarray python3-cryptography python3-cffi-backend python3-six python3-simplejson ganeti-htools-3.0 libpcre3
# Tempest, which is unpacked too, and what it imports beyond that of the OpenStack clients.
TEMPEST_PACKAGES := python3-tempest python3-testtools python3-fixtures python3-extras python3-oslo.concurrency python3-fasteners \
	python3-paramiko python3-bcrypt python3-nacl python3-ddt python3-defusedxml
# The race detector needs a C compiler.
RACE_PACKAGES := gcc libc6-dev

# What is compiled names no directory, so that what one checkout compiled need not be compiled again for another.
ANYWHERE := -trimpath

# The packages that are tested: make test PACKAGES=./internal/queue
PACKAGES     ?= ./...
# The program that the tests drive is linked once, and they are linked without what a debugger needs. They are not vetted here,
# for `make lint` does it; and more of them run at once than there are processors, for those that drive programs mostly wait.
TEST_BINARY  := $(CURDIR)/.cache/test/drover
TEST_FLAGS   := $(ANYWHERE) -vet=off -ldflags '-s -w' -p 4
# What is linked for the tests is on a disk all the same, for it is large.
TEST_DIRS    = GOTMPDIR=$${TMPDIR:-/tmp} TMPDIR=$$(.ci/tmpdir)
TEST_TIMEOUT ?= 20m
RACE_TIMEOUT ?= 25m
# It ends what hangs; Python takes long on a machine that is busy.
STOCK_TIMEOUT ?= 30m
FUZZTIME     ?= 10s
BENCHTIME    ?= 1s
# How much `make capacity` sends through.
JOBS ?= 25000
CHANGES ?= 300
SOAKTIME     ?= 10m
TIME         ?= 1m

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/drover, one static binary
	@test -e $(BIN)/drover || echo "building $(BIN)/drover; the first time its modules are fetched and compiled, which takes some minutes"
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=$$(git rev-parse -q HEAD >/dev/null 2>&1 && echo auto || echo false) -ldflags '-s -w' -o $(BIN)/drover ./cmd/drover

.PHONY: dev
dev: build ## run a whole cluster on this machine (Ctrl-C stops it)
	$(BIN)/drover dev

.PHONY: test
test: test-deps ## install what the tests need and run them all
	CGO_ENABLED=0 $(GO) build $(ANYWHERE) -buildvcs=false -ldflags '-s -w' -o $(TEST_BINARY) ./cmd/drover
	$(TEST_DIRS) DROVER_TEST_BINARY=$(TEST_BINARY) CGO_ENABLED=0 $(GO) test $(TEST_FLAGS) -timeout $(TEST_TIMEOUT) $(PACKAGES)

.PHONY: test-deps
test-deps: ## install the Debian packages that the tests use, if that is allowed, and unpack others
	@./.ci/install -o $(TEST_PACKAGES)
	@./.ci/unpack -o .cache/ganeti $(STOCK_PACKAGES)
	@./.ci/unpack -o .cache/tempest $(TEMPEST_PACKAGES)

.PHONY: race
race: test-deps ## run the tests under the race detector, but for those that drive the built program
	@./.ci/install $(RACE_PACKAGES)
	$(TEST_DIRS) DROVER_PATIENCE=3m CGO_ENABLED=1 $(GO) test $(ANYWHERE) -race -short -timeout $(RACE_TIMEOUT) $(patsubst ./...,./cmd/... ./internal/... ./yaql/...,$(PACKAGES))

.PHONY: conformance
conformance: test-deps ## run all conformance cases and print how many passed
	CGO_ENABLED=0 $(GO) test -timeout $(TEST_TIMEOUT) -count=1 -v -run Conformance ./... | grep -v -e '=== ' -e 'no test files' -e 'no tests to run'

.PHONY: stock-tools
stock-tools: ## hold gnt-* against Ganeti's own tools, and run those on Drover
	@./.ci/install python3
	@./.ci/unpack .cache/ganeti $(STOCK_PACKAGES)
	DROVER_STOCK_TOOLS=1 CGO_ENABLED=0 $(GO) test -count=1 -v -timeout $(STOCK_TIMEOUT) ./test/luxi

.PHONY: tempest
tempest: ## run Tempest's tests of Compute, Identity and Images; a list says which do not pass, and why
	@./.ci/install python3-openstackclient
	@./.ci/unpack .cache/tempest $(TEMPEST_PACKAGES)
	DROVER_TEMPEST=1 CGO_ENABLED=0 $(GO) test -count=1 -v -timeout $(STOCK_TIMEOUT) -run TestTempest ./test/compute

.PHONY: wire-diff
wire-diff: ## make CALLS random calls, drawn from SEED, to a real Ganeti and to Drover, and tell what differs (root)
	DROVER_WIRE_SEED=$(or $(SEED),1) DROVER_WIRE_CALLS=$(or $(CALLS),200) CGO_ENABLED=0 $(GO) test -tags ganeti -count=1 -v -timeout 3h -run TestWire ./test/wire

.PHONY: stock-ganeti
stock-ganeti: ## burn in and rebuild servers on a real Ganeti, which is brought up in namespaces (root)
	CGO_ENABLED=0 $(GO) test -tags ganeti -count=1 -v -timeout $(TEST_TIMEOUT) -run 'Test(Burnin|Rebuild)OnStockGaneti' ./test/compute

.PHONY: upgrade-test
upgrade-test: test-deps ## hold this program and one that knows of no formats against one store, in turns and together
	CGO_ENABLED=0 $(GO) test -tags upgrade -count=1 -v -timeout $(STOCK_TIMEOUT) ./test/upgrade

.PHONY: lint
lint: $(GOLANGCI) ## run go vet and all linters
	CGO_ENABLED=0 $(GO) vet $(ANYWHERE) ./...
	PATH="$$($(GO) env GOROOT)/bin:$$PATH" CGO_ENABLED=0 GOFLAGS=$(ANYWHERE) $(GOLANGCI) run

.PHONY: vet-tags
vet-tags: ## run go vet on what is behind build tags
	CGO_ENABLED=0 $(GO) vet $(ANYWHERE) -tags ganeti ./test/...
	CGO_ENABLED=0 $(GO) vet $(ANYWHERE) -tags soak ./test/...
	CGO_ENABLED=0 $(GO) vet $(ANYWHERE) -tags upgrade ./test/upgrade
	CGO_ENABLED=0 $(GO) vet $(ANYWHERE) -tags simulation ./internal/sim/order

.PHONY: vet-modules
vet-modules: ## build and vet the modules of their own
	cd bench/yaql && CGO_ENABLED=0 $(GO) vet $(ANYWHERE) ./... && CGO_ENABLED=0 $(GO) build $(ANYWHERE) -o /dev/null ./... && $(GO) mod tidy -diff
	cd bench/river && CGO_ENABLED=0 $(GO) vet $(ANYWHERE) ./... && $(GO) mod tidy -diff
	cd tools/webbuild && CGO_ENABLED=0 $(GO) vet $(ANYWHERE) ./... && CGO_ENABLED=0 $(GO) build $(ANYWHERE) -o /dev/null ./... && $(GO) mod tidy -diff

.PHONY: web
web: ## build the page of its sources (web/)
	cd tools/webbuild && $(GO) run .

.PHONY: web-check
web-check: ## fail if the page is not what its sources make, or too large
	cd tools/webbuild && $(GO) run . -check

.PHONY: web-shots
web-shots: ## make pictures of the page's screens, in .cache/web-shots, and those of docs/web anew
	@./.ci/install chromium-headless-shell
	@mkdir -p .cache/web-shots
	DROVER_WEB_SHOTS=$(CURDIR)/.cache/web-shots CGO_ENABLED=0 $(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run TestPictures ./test/web
	@for picture in docs/web/*.png; do cp .cache/web-shots/$$(basename $$picture) $$picture; done

.PHONY: web-firefox
web-firefox: ## see that people sign in with Firefox, too, which is 84 MB to fetch
	@./.ci/install firefox-esr
	DROVER_FIREFOX=$$(command -v firefox-esr) CGO_ENABLED=0 $(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run TestFirefox ./test/web

.PHONY: vulncheck
vulncheck: ## look for known vulnerabilities, where their data can be had
	@./.ci/vulncheck

$(GOLANGCI):
	@mkdir -p $(TOOLS)
	GOBIN=$(abspath $(TOOLS)) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(TOOLS)/golangci-lint $@

.PHONY: fmt
fmt: ## format all Go files
	"$$($(GO) env GOROOT)/bin/gofmt" -w .

.PHONY: fmt-check
fmt-check: ## fail if a Go file is not formatted
	@out=$$(find . -path ./.cache -prune -o -name '*.go' -print0 | xargs -0 "$$($(GO) env GOROOT)/bin/gofmt" -l); if [ -n "$$out" ]; then echo "not formatted (make fmt):"; echo "$$out"; exit 1; fi

.PHONY: tidy-check
tidy-check: ## fail if go.mod or go.sum is not tidy
	$(GO) mod tidy -diff

.PHONY: bench
bench: build test-deps ## run the benchmarks, measure a running controller, and YAQL and the queue beside their peers
	CGO_ENABLED=0 $(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 60m ./...
	@./.ci/bench $(BIN)/drover
	-@cd bench/yaql && $(GO) run .
	-@cd bench/river && CGO_ENABLED=0 $(GO) test -run '^$$' -bench . -benchtime 50000x -timeout 30m

.PHONY: pairs
pairs: ## measure this program beside that of BASE, a revision, in turns: what takes more than a twentieth longer fails (ROUNDS, CYCLES)
	@PATH="$$($(GO) env GOROOT)/bin:$$PATH" CGO_ENABLED=0 $(GO) run ./bench/pairs -rounds $(or $(ROUNDS),5) -cycles $(or $(CYCLES),200) $(or $(BASE),$(error BASE is missing: make pairs BASE=REVISION))

.PHONY: simulate
simulate: ## live through simulated histories of a group: new ones for TIME, SEED=n [PLAN=FILE], or REPEAT=n seeds twice
	@PATH="$$($(GO) env GOROOT)/bin:$$PATH" CGO_ENABLED=0 $(GO) run ./test/simulate/drive $(if $(SEED),replay -plan "$(PLAN)" $(SEED),$(if $(REPEAT),repeat $(REPEAT),run -time $(TIME)))

.PHONY: simulate-power
simulate-power: ## have simulated histories find the known faults, of which each is built in turn (FAULTS names some)
	@PATH="$$($(GO) env GOROOT)/bin:$$PATH" CGO_ENABLED=0 $(GO) run ./test/simulate/drive power $(FAULTS)

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (a time, or 5000x inputs) each
	@FUZZTIME=$(FUZZTIME) GO=$(GO) ./.ci/fuzz

.PHONY: capacity
capacity: build ## measure what a controller needs for JOBS jobs and CHANGES changes of an instance (docs/capacity.md)
	@bench/capacity $(BIN)/drover $(JOBS) $(CHANGES)

.PHONY: soak
soak: ## run the crash and endurance tests for SOAKTIME each, 200 rounds of kills of machines, 1,000 histories of a group, of tags and of a wire to an agent, and 100,000 of the queue
	@./.ci/install strace
	DROVER_SOAK=$(SOAKTIME) CGO_ENABLED=0 $(GO) test -tags soak -count=1 -v -timeout 0 ./test/...
	DROVER_SOAK=$(SOAKTIME) CGO_ENABLED=0 $(GO) test -count=1 -v -timeout 0 -run TestAlertsAreSilent ./internal/app
	DROVER_ROUNDS=200 CGO_ENABLED=0 $(GO) test -count=1 -v -timeout 0 -run TestKills ./test/machines
	DROVER_HISTORIES=1000 CGO_ENABLED=0 $(GO) test -count=1 -v -timeout 0 -run TestHistories ./test/history
	DROVER_SOAK=$(SOAKTIME) CGO_ENABLED=0 $(GO) test -count=1 -timeout 0 -run KilledAnywhere ./internal/exec
	DROVER_HISTORIES=1000 CGO_ENABLED=0 $(GO) test -count=1 -timeout 0 -run 'TestHistories$$' ./internal/tagsync ./internal/agentwire
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 0 -run TestHistories ./internal/queue/machine -histories 100000

.PHONY: yaql-diff
yaql-diff: test-deps ## compare 100,000 random YAQL expressions with the reference
	DROVER_YAQL_DIFF=100000 CGO_ENABLED=0 $(GO) test -timeout 30m -count=1 -v ./yaql/internal/difftest

.PHONY: cover
cover: ## measure test coverage, in .cache/cover.html
	@mkdir -p .cache
	CGO_ENABLED=0 $(GO) test -timeout $(TEST_TIMEOUT) -coverpkg=./... -coverprofile=.cache/cover.out ./...
	$(GO) tool cover -html=.cache/cover.out -o .cache/cover.html
	$(GO) tool cover -func=.cache/cover.out | tail -1

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN) .cache
