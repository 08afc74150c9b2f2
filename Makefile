# The same targets run here and in CI.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME   ?= 10s
FUZZPART   ?= 0/1
SEEDS      ?= 10000
FIRST      ?= 1
TOOLS      ?= $(CURDIR)/.tools

.PHONY: help test race lint check generate bench fuzz sim tools

help: ## show this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: ## run every test (this is README's command)
	go test -timeout 30m ./...

# What the root package, e2e and desk test are programs that are built without the detector, or a
# browser; machine, internal/trust and internal/graph have no goroutine, and TestMutations plays what
# TestSim plays. The detector needs a race once, not thousands of rounds (-short). SQLite is C made Go and
# guards itself: watching each access of its own took most of the time, and would find nothing of ours, which is
# watched up to where it calls SQLite. At its end a program waits 0.1 s for what may still race, and not a second.
race: ## run the tests with the race detector, in random order
	GORACE=atexit_sleep_ms=100 go test -race -gcflags=modernc.org/sqlite/lib=-race=false -short -shuffle=on -skip '^TestMutations$$' -timeout 30m $$(go list ./... | grep -v -e /dialai$$ -e /e2e$$ -e /desk$$ -e /everypage$$ -e /dialai/machine$$ -e /internal/trust$$ -e /internal/graph$$)

sim: ## play SEEDS simulated worlds, from FIRST on (sim/doc.go says how to read a failure)
	DIALAI_SIM_SEEDS=$(SEEDS) DIALAI_SIM_FIRST=$(FIRST) go test ./sim -run 'TestSim$$' -v -count=1 -timeout 24h

lint: tools ## formatting, vet, static analysis, module tidiness
	@files=$$(gofmt -l .); test -z "$$files" || { echo "gofmt would change:"; echo "$$files"; exit 1; }
	go vet ./...
	$(TOOLS)/staticcheck ./...
	go mod tidy -diff
	go mod verify

tools: $(TOOLS)/staticcheck

$(TOOLS)/staticcheck:
	GOBIN=$(TOOLS) go install $(STATICCHECK)

fuzz: ## run every fuzz target for FUZZTIME each, or those of FUZZPART, such as 0/4
	./.ci/fuzz $(FUZZTIME) $(FUZZPART)

generate: ## write everything that is generated
	go generate ./...

check: lint test race fuzz ## everything CI checks
	./.ci/startup
	go generate ./...
	@git diff --exit-code || { echo "make generate changed the tree: commit what it wrote"; exit 1; }

bench: ## run the benchmarks (docs/performance.md says how to read them)
	go test -run '^$$' -bench . -benchtime 2s ./bench ./guard ./internal/spend
	go test -run '^$$' -bench . -benchtime 1x -timeout 30m ./desk
