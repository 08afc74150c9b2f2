// The sample machines of this repository, in the order in which they are best read. Each comes when
// it is asked for.

const files = import.meta.glob<string>('../../../../../machines/{document-review,support-triage,expense-approval,content-moderation,data-labelling,refund-desk,code-review,incident-response,release-pipeline}.{json,yaml}', { query: '?raw', import: 'default' });
const order = ['document-review', 'support-triage', 'expense-approval', 'content-moderation', 'data-labelling', 'refund-desk', 'code-review', 'incident-response', 'release-pipeline'];

export interface Sample {
  file: string;
  load: () => Promise<string>;
}

export const samples: Sample[] = Object.entries(files)
  .map(([path, load]) => ({ file: path.slice(path.lastIndexOf('/') + 1), load }))
  .sort((a, b) => order.indexOf(a.file.replace(/\.\w+$/, '')) - order.indexOf(b.file.replace(/\.\w+$/, '')));
