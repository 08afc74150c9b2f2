package llm

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// Requests and answers of Google's Gemini API. What differs from others: names of tools
// must begin with a letter or an underscore, so others get an underscore in front, in a
// way that no two names become one; a blocked prompt is an answer without candidates;
// and thoughts are counted beside the output, of which they are made a part here, as
// they are paid for.

// generate is Google's Gemini API.
type generate struct{}

func (generate) path(model string) string {
	return "/models/" + url.PathEscape(strings.TrimPrefix(model, "models/")) + ":generateContent"
}

func (generate) headers(key string) []webhook.Header {
	return []webhook.Header{{Name: "X-Goog-Api-Key", Value: key}}
}

func (generate) encode(dst []byte, _ string, r *Request, q quirks) []byte {
	dst = append(dst, '{')
	if r.System != "" {
		dst = jsontext.AppendString(append(dst, `"systemInstruction":{"parts":[{"text":`...), r.System)
		dst = append(dst, `}]},`...)
	}
	dst = jsontext.AppendString(append(dst, `"contents":[{"role":"user","parts":[{"text":`...), r.User)
	dst = append(dst, `}]}],"generationConfig":{"candidateCount":1`...)
	if !q.has(noMaxTokens) {
		dst = appendInt(dst, "maxOutputTokens", int64(r.maxTokens()))
	}
	if !q.has(noTemperature) {
		dst = jsontext.AppendFloat(append(dst, `,"temperature":`...), r.Temperature)
	}
	if r.Seed != 0 && !q.has(noSeed) {
		dst = appendInt(dst, "seed", r.Seed)
	}
	if r.LogProbs && !q.has(noLogProbs) {
		dst = append(dst, `,"responseLogprobs":true`...)
	}
	if r.Schema != nil && !q.has(noSchema) {
		dst = append(dst, `,"responseMimeType":"application/json","responseJsonSchema":`...)
		dst = append(dst, r.Schema...)
	}
	dst = append(dst, '}')
	if len(r.Tools) > 0 {
		dst = append(dst, `,"tools":[{"functionDeclarations":[`...)
		for i, t := range r.Tools {
			if i > 0 {
				dst = append(dst, ',')
			}
			t.Name = functionName(t.Name)
			dst = appendTool(dst, t, "parametersJsonSchema")
		}
		dst = append(append(append(dst, `]}],"toolConfig":{"functionCallingConfig":{"mode":"`...), q.choice("AUTO", "ANY")...), `"}}`...)
	}
	return append(dst, '}')
}

// functionName returns what stands for a tool: Gemini takes only names that begin with a
// letter or an underscore, so others get one more of these in front.
func functionName(tool string) string {
	if marked(tool) {
		return "_" + tool
	}
	return tool
}

// toolName returns the tool for which a name stands.
func toolName(function string) string {
	if tool, ok := strings.CutPrefix(function, "_"); ok && marked(tool) {
		return tool
	}
	return function
}

// marked reports whether a name begins, after underscores, with what is neither one nor a
// letter: so no two names get the same one.
func marked(name string) bool {
	rest := strings.TrimLeft(name, "_")
	return rest != "" && (rest[0] == '-' || '0' <= rest[0] && rest[0] <= '9')
}

// A generated is the body of a success.
type generated struct {
	Candidates []struct {
		Content struct {
			Parts []struct {
				Text         string `json:"text"`
				Thought      bool   `json:"thought"`
				FunctionCall *struct {
					Name string          `json:"name"`
					Args json.RawMessage `json:"args"`
				} `json:"functionCall"`
			} `json:"parts"`
		} `json:"content"`
		FinishReason string `json:"finishReason"`
		LogProbs     *struct {
			Chosen []struct {
				Token          string          `json:"token"`
				LogProbability json.RawMessage `json:"logProbability"`
			} `json:"chosenCandidates"`
		} `json:"logprobsResult"`
	} `json:"candidates"`
	PromptFeedback struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt     tally `json:"promptTokenCount"`
		Candidates tally `json:"candidatesTokenCount"`
		Thoughts   tally `json:"thoughtsTokenCount"`
		Cached     tally `json:"cachedContentTokenCount"`
		ToolPrompt tally `json:"toolUsePromptTokenCount"`
	} `json:"usageMetadata"`
	ModelVersion name      `json:"modelVersion"`
	ResponseID   name      `json:"responseId"`
	Error        *apiError `json:"error"`
}

func (generate) decode(body []byte, into *Response) error {
	var g generated
	if err := readBody(body, &g); err != nil {
		return err
	}
	into.ID, into.Model = string(g.ResponseID), string(g.ModelVersion)
	g.usage(&into.Usage)
	if len(g.Candidates) == 0 {
		switch {
		case g.PromptFeedback.BlockReason != "":
			into.Finish, into.Refusal = Filtered, "the prompt was blocked: "+g.PromptFeedback.BlockReason
			return nil
		case g.Error != nil:
			return g.Error
		}
		return errNoChoices
	}
	c := &g.Candidates[0]
	into.Finish = generatedFinish[c.FinishReason]
	for _, p := range c.Content.Parts {
		if p.FunctionCall != nil {
			into.ToolCalls = append(into.ToolCalls, ToolCall{toolName(p.FunctionCall.Name), string(p.FunctionCall.Args)})
		} else if !p.Thought {
			into.Text += p.Text
		}
	}
	if c.LogProbs != nil {
		for _, p := range c.LogProbs.Chosen {
			into.logProb(p.Token, p.LogProbability)
		}
	}
	return nil
}

// usage takes over the counts. Gemini counts thoughts beside the answer, we count
// them as part of the output, which is how they are paid for.
func (g *generated) usage(into *specialist.Usage) {
	u := g.Usage
	if u == nil {
		return
	}
	if !u.Candidates.there && u.Prompt.given && !g.answered() {
		u.Candidates.given = true // it is left out where nothing was answered
	}
	count(&into.NumInputTokens, u.Prompt.count(), &into.Given, specialist.InputGiven)
	count(&into.NumOutputTokens, u.Candidates.count(), &into.Given, specialist.OutputGiven)
	if into.Has(specialist.InputGiven) {
		into.NumInputTokens = exact.AddSat(into.NumInputTokens, u.ToolPrompt.n)
	}
	if into.Has(specialist.OutputGiven) {
		into.NumOutputTokens = exact.AddSat(into.NumOutputTokens, u.Thoughts.n)
	}
	detail(into, specialist.UsageDetail{CacheReadTokens: u.Cached.n, ReasoningTokens: u.Thoughts.n})
}

// answered reports whether the model said anything beside its thoughts.
func (g *generated) answered() bool {
	for _, c := range g.Candidates {
		for _, p := range c.Content.Parts {
			if p.FunctionCall != nil || p.Text != "" && !p.Thought {
				return true
			}
		}
	}
	return false
}

// generatedFinish is why this API says that the model stopped.
var generatedFinish = map[string]Finish{
	"STOP": Stopped, "MAX_TOKENS": TooLong, "SAFETY": Filtered, "RECITATION": Filtered,
	"BLOCKLIST": Filtered, "PROHIBITED_CONTENT": Filtered, "SPII": Filtered, "LANGUAGE": Filtered,
}
