import type { components } from './schema.d.ts';

// The forms of the API, by the names of its reference.

type Schemas = components['schemas'];
export type About = Schemas['About'];
export type Item = Schemas['Item'];
export type ReviewItem = Schemas['ReviewItem'];
export type Transition = Schemas['InboxTransition'];
export type TransitionRecord = Schemas['TransitionRecord'];
export type Session = Schemas['Session'];
export type Ruled = Schemas['Ruled'];
export type Reviewed = Schemas['Reviewed'];
export type Explanation = Schemas['ExplainExplanation'];
export type LogEvent = Schemas['Event'];
export type Claim = Schemas['Claim'];
export type Summary = Schemas['Summary'];
export type Machine = Schemas['Machine'];
export type Driven = Schemas['Driven'];
export type ModelCall = Schemas['ModelCall'];
export type Ran = Schemas['Ran'];
export type Vote = Schemas['ExplainVote'];

export type Metrics = Schemas['Metrics'];
export type MachineVersion = Schemas['Machine'];
export type Risks = Schemas['Risks'];
export type StateCollapse = Schemas['StateCollapse'];
export type Specialist = Schemas['Specialist'];
export type Trusted = Schemas['Trusted'];
export type TrustSeries = Schemas['TrustSeries'];
export type Calibration = Schemas['Calibration'];
export type Job = Schemas['Job'];
export type Succession = Schemas['Succession'];
export type Spent = Schemas['Spent'];
export type DryAnswer = Schemas['DryAnswer'];
export type DryRound = Schemas['DryRound'];
export type DryRun = Schemas['DryRun'];

/** A page of a list. */
export interface List<T> {
  items: T[];
  nextCursor?: string;
}

/** What was proposed, as a question has it. */
export interface Proposal {
  proposalId: string;
  specialistId: string;
  transitionName: string;
  toState: string;
  reasoning: string;
  metaJson?: unknown;
  costUSD?: unknown;
}

/** An event of the inbox's stream. */
export interface InboxEvent {
  kind: 'question.opened' | 'question.changed' | 'question.closed' | 'review.opened' | 'review.closed' | 'claim.changed';
  questionId: string;
  sessionId: string;
  machineName: string;
  question?: Item;
  review?: ReviewItem;
  claim?: Claim;
}

/** Where everything of a machine's graph stands, and what is written there. */
export interface Drawing {
  width: number;
  height: number;
  down: boolean;
  plain: boolean;
  start: Route;
  states: DrawnState[];
  edges: DrawnEdge[];
  legend: { mark: string; text: string; full?: string }[];
}

export interface Route {
  line: number[][]; // where it begins; then the end of a straight segment, or two control points and the end of a curve
  head: number[]; // the corners, the tip first
}

export interface Written {
  text: string;
  x: number;
  y: number;
}

export interface DrawnBox {
  x: number;
  y: number;
  width: number;
  height: number;
}

interface Drawn extends DrawnBox {
  name: string;
  marks: string[];
  icons: { name: string; x: number; y: number }[];
  lines: Written[];
  notes: { text: string; lines: Written[] }[];
}

export type DrawnState = Drawn;

export interface DrawnEdge extends Route {
  from: string;
  to: string;
  label: DrawnBox;
  transitions: Drawn[];
}
